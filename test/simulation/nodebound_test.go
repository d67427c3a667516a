package simulation_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A pod that can run on one node only goes before others there while it may be tried and was
// not, and again when its node comes or changes (D0). The pods of a namespace have ten
// seconds for that. This is judged by the calls to the store, by the beginnings of cycles,
// and by the scheduler's own view of the node.

// goesFirstFor is how long the pods of a namespace go first on a node without being tried.
const goesFirstFor = 10 * time.Second

// nodeOf is a node as the pods of a namespace have it.
type nodeOf struct{ node, namespace string }

// nodeBound is a waiting pod that can run on one node only. It goes first from then on.
type nodeBound struct {
	objects.Pod
	since time.Time
}

// bindToNode records a waiting pod that can run on one node only. The caller holds mu.
func (w *interceptor) bindToNode(p *objects.Pod, now time.Time) {
	old, known := w.nodeBound[p.UID]
	switch {
	case p.RequiredNode == "" || p.Node != "" || p.Gated || p.Deleting || p.Terminal || p.Foreign && !p.Peer:
		delete(w.nodeBound, p.UID)
	case !known || old.RequiredNode != p.RequiredNode || old.Priority != p.Priority || !old.Request.Equal(p.Request):
		w.nodeBound[p.UID] = nodeBound{*p, now}
		if at := (nodeOf{p.RequiredNode, p.Namespace}); w.firstBound[at].IsZero() {
			w.firstBound[at] = now
		}
	default:
		w.nodeBound[p.UID] = nodeBound{*p, old.since} // its queue may have changed
	}
}

// resetNodeBound lets the pods that can run on a node only go first again. The caller holds mu.
func (w *interceptor) resetNodeBound(node string, now time.Time) {
	maps.DeleteFunc(w.firstBound, func(at nodeOf, _ time.Time) bool { return at.node == node })
	for uid, p := range w.nodeBound {
		if p.RequiredNode == node {
			w.nodeBound[uid] = nodeBound{p.Pod, now}
			w.firstBound[nodeOf{node, p.Namespace}] = now
		}
	}
}

// NodeChanged passes on that a node changed for the filters.
func (w *interceptor) NodeChanged(name string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.nodes[name]; known {
		w.resetNodeBound(name, now)
	}
	w.Store.NodeChanged(name, now)
}

// goesFirst returns the pod that can run on a node only, goes first there, and would have too little
// room beside another pod; empty if there is none. Waiting pods of the node that may not go first any
// more can take the room of those after them, so with these all have to fit.
func (in *instance) goesFirst(pod *corev1.Pod, node fwk.NodeInfo) types.UID {
	w, name := in.interceptor, node.Node().Name
	defer w.lockAll()()
	if h, holds := w.Holds().Of(pod.UID); len(w.nodeBound) == 0 || w.in.sim.onceRequired(pod.UID) == name || holds && h.Node == name {
		return ""
	}
	free, there := freeOf(node)
	var first []nodeBound
	for uid, p := range w.nodeBound {
		_, placed := w.placed[uid]
		if _, seen := there[uid]; p.RequiredNode == name && !placed && !seen {
			first = append(first, p)
		}
	}
	slices.SortFunc(first, func(a, b nodeBound) int { return inOrder(&a.Pod, &b.Pod) })
	var all, untried resources.Vector
	for _, p := range first {
		all = all.Add(p.Request)
		failed := !w.leftAt[p.UID].Before(p.since) // its last try ended with an error
		if tried, once := in.tried[p.UID]; failed || once && !tried.began.Before(p.since) || time.Since(w.firstBound[nodeOf{name, p.Namespace}]) >= goesFirstFor || !w.mayGoFirst(&p.Pod) {
			continue
		}
		if untried = untried.Add(p.Request); free.Covers(all) && free.Covers(request(pod)) && !free.Sub(untried).Covers(request(pod)) {
			return p.UID
		}
	}
	return ""
}

// freeOf is what is free on a node as the scheduler has it, and what the pods there request.
func freeOf(node fwk.NodeInfo) (free resources.Vector, there map[types.UID]resources.Vector) {
	free, there = informer.Allocatable(node.Node()), map[types.UID]resources.Vector{}
	for _, p := range node.GetPods() {
		there[p.GetPod().UID] = request(p.GetPod())
		free = free.Sub(there[p.GetPod().UID])
	}
	return free, there
}

// mayGoFirst tells whether a waiting pod is tried as soon as its turn comes: it was let
// through, or it waits in the order and no quota can refuse it.
func (w *interceptor) mayGoFirst(p *objects.Pod) bool {
	if p.Foreign {
		return true
	}
	why := w.Explain(p.UID)
	return why.None() || why.Code == reasons.InOrder && p.Labels[objects.PodGroupLabel] == "" && !slices.ContainsFunc(claimantOf(p).quotas(w.Spec()), func(q quota) bool {
		return q.missing || q.apps > 0 || !q.max.IsUnlimited()
	})
}

// roomFirst is how a node is refused because a pod goes first there.
var roomFirst = regexp.MustCompile(`has room for pod ([^/ ]+)/(\S+) first`)

// untriable tells for which pod a node was refused, and why that keeps no room there: it
// is not known as one that waits for this node, or it may not be tried. It returns nothing if
// the pod may keep room, as every pod does while the store has not seen the node as it is.
func (w *interceptor) untriable(status *fwk.Status, node *corev1.Node) string {
	name := roomFirst.FindStringSubmatch(status.Message())
	if name == nil {
		return ""
	}
	w.in.sim.count(saidFirst)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.nodes[node.Name].Equal(informer.Allocatable(node)) {
		return ""
	}
	why := "it does not wait for the node"
	for uid, p := range w.nodeBound {
		if p.Namespace == name[1] && p.Name == name[2] && p.RequiredNode == node.Name {
			if why = w.notTried(uid, &p.Pod); why == "" {
				return ""
			}
		}
	}
	return fmt.Sprintf("keeps room on node %s for %s, and %s (D0)", node.Name, name[2], why)
}

// notTried returns why a pod of a queue may not be tried, if that is so.
func (w *interceptor) notTried(uid types.UID, p *objects.Pod) string {
	x, known := w.Explanation(uid, time.Now())
	if !known || p.Foreign {
		return ""
	}
	tooLarge := func(q quota) bool { return !q.max.Allows(resources.Vector{}, p.Request) }
	switch {
	case x.State == "NoQueue", x.State == "GroupBlocked", x.State == "Queued" && x.Why.Code.IsQuota():
		return "it waits: " + x.Why.String()
	case x.State == "Queued" && slices.ContainsFunc(claimantOf(p).quotas(w.Spec()), tooLarge):
		return "it can never be tried"
	}
	return ""
}

// filter asks the plugin. It notes a node that the plugin lets a pod have although another
// pod goes first there, and finds one that is kept for a pod that may not be tried.
func (w *watchedReservation) filter(ask func() *fwk.Status, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	before := w.in.goesFirst(pod, node)
	if w.in.sim.bug == bugUntried {
		ask = w.in.interceptor.keepWrongly(ask, pod, node.Node().Name)
	}
	status := ask()
	if name := node.Node().Name; w.in.sim.bug == bugLast && !w.in.interceptor.Holds().Concerns(name, pod.UID) {
		status = nil
	}
	untriable := func(status *fwk.Status) string { return w.in.interceptor.untriable(status, node.Node()) }
	w.in.checkAnswer(status, ask, untriable)
	switch {
	case before == "":
	case !status.IsSuccess():
		w.in.sim.count(keptFirst)
	case w.in.goesFirst(pod, node) == before:
		w.in.api.locked(func() { w.in.overtakes[node.Node().Name] = before })
	}
	return status
}

// checkAnswer finds a wrong answer of the filter. What it is about may have changed since the plugin was
// asked, so it is asked again.
func (in *instance) checkAnswer(status *fwk.Status, ask func() *fwk.Status, wrong func(*fwk.Status) string) {
	if wrong(status) == "" {
		return
	}
	if what := wrong(ask()); what != "" {
		in.api.locked(func() { in.sim.fault("%s %s", in.name, what) })
	}
}

// misjudges returns what is wrong with an answer of the filter about a node of which all holders wait
// only for pods of their own namespace. They keep room for their requests from pods of other
// namespaces, and not the node.
func (in *instance) misjudges(status *fwk.Status, pod *corev1.Pod, node fwk.NodeInfo) string {
	open, applies := in.besideOwn(pod, node)
	held := strings.Contains(status.Message(), "is held for pod")
	keeps := strings.Contains(status.Message(), "keeps room for pods")
	if held {
		in.sim.count(saidHeld)
	}
	switch {
	case !applies:
		return ""
	case open && (held || keeps):
		return fmt.Sprintf("closes node %s for pods of its own namespace, and for %s", node.Node().Name, pod.Name)
	case !open && status.IsSuccess():
		return fmt.Sprintf("lets %s have node %s, and leaves no room for a holder", pod.Name, node.Node().Name)
	case keeps:
		in.sim.count(keptBesideOwn)
	}
	in.sim.count(besideOwn)
	return ""
}

// besideOwn tells whether a pod fits a node beside holders that wait only for pods of their own
// namespace: beside those that fit now, and beside all once these pods are gone. It does not apply where other holders or those of a PodGroup are on
// the node, where the pod is of such a namespace or has a claim on the node, or where the pod does not fit now.
func (in *instance) besideOwn(pod *corev1.Pod, node fwk.NodeInfo) (open, applies bool) {
	w, name := in.interceptor, node.Node().Name
	defer w.lockAll()()
	holds, required := w.Holds(), w.in.sim.onceRequired(pod.UID) == name
	if _, has := holds.Of(pod.UID); has || !holds.Concerns(name, pod.UID) {
		return false, false
	}
	free, there := freeOf(node)
	now, later, owned := free, free, map[types.UID]bool{} // owned by a DaemonSet pod that waits for them
	for _, h := range holds.On(name) {
		for _, uid := range h.Awaited {
			owned[uid] = owned[uid] || h.NodeBound && h.Group == "" && !holds.Placed(h.Asker) && w.pods[uid].Namespace == h.Namespace
		}
	}
	open = true
	for _, h := range holds.On(name) {
		if holds.Placed(h.Asker) || required && !h.NodeBound {
			continue // nor do ordinary holds keep a pod off the only node on which it can run
		}
		for _, uid := range h.Awaited {
			if w.pods[uid].Namespace != h.Namespace && !(h.NodeBound && owned[uid]) {
				return false, false
			}
			later = later.Add(there[uid])
			there[uid] = resources.Vector{}
		}
		if len(h.Awaited) == 0 || h.Namespace == pod.Namespace || h.Group != "" {
			return false, false
		}
		if _, nominated := there[h.Asker]; !nominated {
			if later = later.Sub(h.Request); now.Covers(h.Request) {
				now = now.Sub(h.Request)
			}
		}
		applies, open = true, open && later.Covers(request(pod)) && now.Covers(request(pod))
	}
	return open, applies && free.Covers(request(pod))
}

// keepForOwnWrongly makes the plugin keep a node, or no room on it, for holders that wait only for
// pods of their own namespace.
func (in *instance) keepForOwnWrongly(ask func() *fwk.Status, pod *corev1.Pod, node fwk.NodeInfo) func() *fwk.Status {
	return func() *fwk.Status {
		_, applies := in.besideOwn(pod, node)
		switch {
		case !applies:
			return ask()
		case in.sim.bug == bugClosed:
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the node is held for pod")
		}
		return nil
	}
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
		s.createDaemon(node, move{kind: "daemon", a: m.a + i, b: m.b, n: m.n})
	}
}

// createDaemon makes a pod of a DaemonSet. The caller holds the lock.
func (s *simulation) createDaemon(node string, m move) {
	profile := managed
	if m.a%3 == 0 {
		profile = plain
	}
	if len(s.api.pods.objects) < mostPods {
		pod := s.newPod(profile, m)
		daemonize(pod, node, m)
		s.create(pod)
	}
}
