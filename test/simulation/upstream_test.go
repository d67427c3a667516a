package simulation_test

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// A pod that upstream's preemption has nominated to a node has precedence there over pods
// of no higher priority. Pods that make room beside it must leave enough for both.

// reserved returns, for each node, the nominated pods of the other profile that precede a
// pod of some priority. The caller does not hold the lock of the API server, because
// reserved calls the scheduler's queue.
func (in *instance) reserved(nodes []string, priority int32) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for _, node := range nodes {
		for _, n := range in.nominated(node) {
			if pod := n.GetPod(); pod.Spec.SchedulerName == plain && *pod.Spec.Priority >= priority {
				out[node] = append(out[node], pod)
			}
		}
	}
	return out
}

// judgeNominated finds a plan that makes too little room for the asker beside the pods
// that were nominated to the node when the cycle of the asker began, and still are. Only
// pods count that the process knew then. Victims of a hold that ended since the plan was made
// count as leaving: the filters, which know nominated pods, are not asked again.
func (w *interceptor) judgeNominated(item *output.Work) {
	d := item.Decision
	if d == nil || d.Outcome != planner.Preempt {
		return
	}
	s, in := w.in.sim, w.in
	now := in.reserved([]string{item.Hold.Node}, item.Hold.Priority)[item.Hold.Node]
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	then, asker := in.tried[item.UID], s.api.podOf(item.UID)
	node := s.api.node(item.Hold.Node)
	knew := min(then.knew[s.api.pods], then.knew[s.api.nodes])
	if node == nil || asker == nil || s.api.surprised(in, item.Hold.Node, knew) || s.api.surprised(in, asker.Name, knew) {
		return
	}
	free := informer.Allocatable(node).Sub(request(asker))
	names := ""
	for _, before := range then.reserved[item.Hold.Node] {
		pod := s.api.podOf(before.UID)
		still := slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.UID == before.UID })
		if still && pod != nil && pending(pod) && !s.api.surprised(in, pod.Name, knew) {
			free, names = free.Sub(request(pod)), names+" "+pod.Name
		}
	}
	if names == "" {
		return
	}
	s.count(besideNominated)
	leaving := w.chosenFor(item)
	for _, pod := range s.api.allPods() {
		going := slices.ContainsFunc(d.Victims, func(v planner.Victim) bool { return v.UID == string(pod.UID) })
		if pod.Spec.NodeName != node.Name || ended(pod) || pod.DeletionTimestamp != nil || going || leaving[pod.UID] || s.api.boundAt[pod.UID] > knew {
			continue
		}
		if !s.api.surprised(in, pod.Name, knew) {
			free = free.Sub(request(pod))
		}
	}
	for kind, amount := range free.All() {
		if amount < 0 {
			s.fault("%s makes room on %s for %s, and it has none beside what is nominated there:%s; %s lacks %v", in.name, node.Name, item.Name, names, kind, -amount)
			return
		}
	}
}

// chosenFor are the victims of holds in force, and those of any earlier plan that this plan waits for.
func (w *interceptor) chosenFor(item *output.Work) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, h := range w.Holds().All() {
		for _, uid := range h.Chosen {
			out[uid] = true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.claimed {
		for _, uid := range c.victims {
			out[uid] = out[uid] || slices.Contains(item.Hold.Awaited, uid)
		}
	}
	return out
}

// blindHandle runs the filters without nominated pods.
type blindHandle struct{ fwk.Handle }

func (b blindHandle) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	return b.RunFilterPlugins(ctx, state, pod, info)
}

// A pod for which upstream's preemption makes room is stranded when its last victim is found to be gone
// already, to have ended, or to have lost its place because its bind failed: while the calls go on, that
// event brings the pod back in vain, and no other one follows (kubernetes/kubernetes#141694). The pod
// stays nominated to the node until the queue is flushed, and filters keep the room for it.
//
//	         a call for a victim is answered "not found", or deletes one without room
//	nominated ─────────────────────────────────────────► perhaps stranded
//	    ▲                                                       │
//	    └───────────────────────────────────────────────────────┘
//	                    a cycle of the pod begins
//
// A call does not show for which pod it is made, so all pods nominated at that time may
// be stranded. There is no rest until the queue was flushed, which tries them.
//
// A pod of default-scheduler may be stranded too if it was tried while the scheduler's cache had more on
// a node than the node had. That is so for a pod that was given the node and requested less when it was
// seen there, or was seen on another node, or ended unseen. The scheduler's queue gets no event for that
// room. The store brings back only pods of queues.

// hasRoom tells whether a pod that is deleted gives room back: it runs on a node, or this
// process is about to bind it.
func (in *instance) hasRoom(pod *corev1.Pod) bool {
	in.interceptor.mu.Lock()
	defer in.interceptor.mu.Unlock()
	return !ended(pod) && (pod.Spec.NodeName != "" || in.interceptor.isLodged(pod.UID))
}

// strand is called when a call of upstream's preemption finds no running victim.
func (in *instance) strand() {
	nodes := in.nodeNames()
	var stranded []types.UID
	for _, node := range nodes {
		for _, nominated := range in.nominated(node) {
			if pod := nominated.GetPod(); pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
				stranded = append(stranded, pod.UID)
			}
		}
	}
	in.api.locked(func() {
		for _, pod := range in.api.allPods() { // a pod that must run on its node takes their nominations
			if pod.Spec.SchedulerName == corev1.DefaultSchedulerName && pending(pod) && pod.Status.NominatedNodeName != "" {
				stranded = append(stranded, pod.UID)
			}
		}
		for _, uid := range stranded {
			in.stranded[uid] = true
		}
	})
}

func (in *instance) nodeNames() (names []string) {
	in.api.locked(func() {
		for _, n := range in.api.allNodes() {
			names = append(names, n.Name)
		}
	})
	return names
}

// lodging is the placement of a pod by a cycle.
type lodging struct {
	node    string
	request resources.Vector
}

// lodge records a placement by a cycle of the other profile.
func (w *interceptor) lodge(pod *corev1.Pod, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told++
	if known := w.pods[pod.UID]; known.Node == "" {
		w.lodged[pod.UID] = lodging{node, request(pod)}
	}
}

// moveOut records that such a cycle has failed.
func (w *interceptor) moveOut(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told++
	delete(w.lodged, pod.UID)
}

// movesIn records that a pod is seen on a node; the caller holds mu.
func (w *interceptor) movesIn(p *objects.Pod, now time.Time) {
	if l, given := w.lodged[p.UID]; given && (l.node != p.Node || !p.Request.Covers(l.request)) {
		w.gaveBack = now
	}
	delete(w.lodged, p.UID)
}

// strandBeside marks the pods that were tried before room turned out to be free. The
// caller holds the lock of the API server.
func (in *instance) strandBeside() {
	w := in.interceptor
	w.mu.Lock()
	at := w.gaveBack
	w.gaveBack = time.Time{}
	w.mu.Unlock()
	if at.IsZero() {
		return
	}
	for _, pod := range in.api.allPods() {
		tried, once := in.tried[pod.UID]
		if pod.Spec.SchedulerName == corev1.DefaultSchedulerName && pending(pod) && once && !tried.began.After(at) {
			in.stranded[pod.UID] = true
		}
	}
}

// stranded tells whether a waiting pod may be stranded. The caller holds the lock.
func (s *simulation) stranded() bool {
	leader := s.leader()
	return leader != nil && slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool { return pending(p) && leader.stranded[p.UID] })
}
