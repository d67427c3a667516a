package simulation_test

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A pod that can run on one node only goes before others there until it was tried, for
// ten seconds at most, and again when its node comes or changes (D0). This is judged by
// the calls to the store, by the beginnings of cycles, and by the scheduler's own view of
// the node.

// goesFirstFor is how long such a pod goes first without being tried.
const goesFirstFor = 10 * time.Second

// nodeBound is a waiting pod that can run on one node only. It goes first from then on.
type nodeBound struct {
	objects.Pod
	since time.Time
}

// bindToNode records a waiting pod that can run on one node only. The caller holds mu.
func (w *witness) bindToNode(p *objects.Pod, now time.Time) {
	old, known := w.nodeBound[p.UID]
	switch {
	case p.RequiredNode == "" || p.Node != "" || p.Gated || p.Deleting || p.Terminal || p.Foreign && !p.Peer:
		delete(w.nodeBound, p.UID)
	case !known || old.RequiredNode != p.RequiredNode || old.Priority != p.Priority || !old.Request.Equal(p.Request):
		w.nodeBound[p.UID] = nodeBound{*p, now}
	}
}

// renewNodeBound lets the pods that can run on a node only go first again. The caller
// holds mu.
func (w *witness) renewNodeBound(node string, now time.Time) {
	for uid, p := range w.nodeBound {
		if p.RequiredNode == node {
			w.nodeBound[uid] = nodeBound{p.Pod, now}
		}
	}
}

// NodeChanged passes on that a node changed for the filters.
func (w *witness) NodeChanged(name string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.nodes[name]; known {
		w.renewNodeBound(name, now)
	}
	w.Store.NodeChanged(name, now)
}

// goesFirst returns the pod that can run on a node only, goes first there, and would have
// too little room beside another pod; empty if there is none. Waiting pods of the node that
// may not go first any more can take the room of those after them, so with these all have
// to fit.
func (in *instance) goesFirst(pod *corev1.Pod, node fwk.NodeInfo) types.UID {
	in.api.mu.Lock()
	defer in.api.mu.Unlock()
	w, name := in.witness, node.Node().Name
	w.mu.Lock()
	defer w.mu.Unlock()
	if h, holds := w.Holds().Of(pod.UID); len(w.nodeBound) == 0 || w.in.sim.onceRequired(pod.UID) == name || holds && h.Node == name {
		return ""
	}
	free, there := informer.Allocatable(node.Node()), map[types.UID]bool{}
	for _, p := range node.GetPods() {
		free, there[p.GetPod().UID] = free.Sub(request(p.GetPod())), true
	}
	var first []nodeBound
	for uid, p := range w.nodeBound {
		if p.RequiredNode == name && !there[uid] {
			first = append(first, p)
		}
	}
	slices.SortFunc(first, func(a, b nodeBound) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
	var all, untried resources.Vector
	for _, p := range first {
		all = all.Add(p.Request)
		if tried, once := in.tried[p.UID]; once && !tried.Before(p.since) || time.Since(p.since) >= goesFirstFor {
			continue
		}
		if untried = untried.Add(p.Request); free.Covers(all) && free.Covers(request(pod)) && !free.Sub(untried).Covers(request(pod)) {
			return p.UID
		}
	}
	return ""
}

// filter asks the plugin, and notes a node that it lets a pod have although another pod
// goes first there.
func (w *watchedReservation) filter(ask func() *fwk.Status, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	before := w.in.goesFirst(pod, node)
	status := ask()
	if name := node.Node().Name; w.in.sim.bug == bugLast && !w.in.witness.Holds().Concerns(name, pod.UID) {
		status = nil
	}
	switch {
	case before == "":
	case !status.IsSuccess():
		w.in.sim.count(keptFirst)
	case w.in.goesFirst(pod, node) == before:
		w.in.api.locked(func() { w.in.overtakes[node.Node().Name] = before })
	}
	return status
}

// checkFirst finds a pod that is given a node although another pod goes first there.
func (in *instance) checkFirst(pod *corev1.Pod, node string) {
	in.api.locked(func() {
		if first := in.overtakes[node]; first != "" {
			in.sim.fault("%s places %s on node %s, and leaves no room for %s, which can run there only and was not tried (D0)", in.name, pod.Name, node, in.sim.podName(first))
		}
	})
}

// rollOut makes the pods of DaemonSets for a node that came. The caller holds the lock.
func (s *simulation) rollOut(node string, m move) {
	for i := range m.n % 3 {
		profile := managed
		if (m.a+i)%3 == 0 {
			profile = plain
		}
		if len(s.api.pods.objects) < mostPods {
			pod := s.newPod(profile, move{kind: "daemon", a: m.a + i, b: m.b, n: m.n})
			daemonize(pod, node, m)
			s.create(pod)
		}
	}
}
