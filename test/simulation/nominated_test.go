package simulation_test

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/planner"
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

// chosenFor are the victims of holds in force, and those of any earlier plan that this plan waits
// for.
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
