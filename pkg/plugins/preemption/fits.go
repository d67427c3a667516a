package preemption

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// trial asks the scheduler's own filters about nodes without some of their pods.
// It is the one place where the rules of queues meet those of nodes; it copies
// what it changes.
type trial struct {
	handle fwk.Handle
	state  fwk.CycleState
	pod    *corev1.Pod
	world  *victims.World
	// exists tells of a pod that the snapshot has whether it is there still: the store
	// may have heard of its end before the cycle's snapshot was made without it, and
	// informers know before both. Nil where the snapshot lacks such pods.
	exists func(*corev1.Pod) bool
	// came are, by node that the filters were asked about, the pods that ended since
	// the snapshot was made.
	came map[string]map[types.UID]bool
	// extenders are asked after the filters.
	extenders *extenders
}

func newTrial(handle fwk.Handle, state fwk.CycleState, pod *corev1.Pod, w *victims.World, exists func(*corev1.Pod) bool) *trial {
	return &trial{
		handle: handle, state: state, pod: pod, world: w, exists: exists, came: map[string]map[types.UID]bool{},
		extenders: newExtenders(handle, pod),
	}
}

// ended are the pods that the snapshot has on a node, and that are not there any more.
func (t *trial) ended(info fwk.NodeInfo, node string) map[types.UID]bool {
	ended, known := t.came[node]
	if known || t.exists == nil {
		return ended
	}
	has := make(map[types.UID]bool, len(info.GetPods()))
	for _, p := range t.pods(node) {
		has[types.UID(p.UID)] = true
	}
	for _, pi := range info.GetPods() {
		if pod := pi.GetPod(); !has[pod.UID] && !t.exists(pod) {
			if ended == nil {
				ended = map[types.UID]bool{}
			}
			ended[pod.UID] = true
		}
	}
	t.came[node] = ended
	return ended
}

// pods are those of a node, as the store has them.
func (t *trial) pods(node string) []*victims.Pod {
	at, found := slices.BinarySearchFunc(t.world.Nodes, node, func(n *victims.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return nil
	}
	return t.world.Nodes[at].Pods
}

// leaving are the pods that go from a node anyway.
func (t *trial) leaving(node string) []*victims.Pod {
	var out []*victims.Pod
	for _, p := range t.pods(node) {
		if p.Protection == victims.Leaving {
			out = append(out, p)
		}
	}
	return out
}

// fits tells whether the filters and the extenders pass on the node once the pods, and
// those that leave it anyway, are gone. Pods nominated there count as upstream counts them.
func (t *trial) fits(ctx context.Context, node string, without []*victims.Pod) victims.Fit {
	info, err := t.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return victims.Never // it was deleted since the cycle began
	}
	going := append(t.leaving(node), without...)
	gone := make(map[types.UID]bool, len(going))
	for _, p := range going {
		gone[types.UID(p.UID)] = true
	}
	info, state := info.Snapshot(), t.state.Clone()
	state.Write(reservation.PlanningKey, reservation.Planning{})
	logger := klog.FromContext(ctx)
	leaves := t.extenders.leave(without, t.world.Budgets)
	ended := t.ended(info, node) // who is counted though he ended would cost somebody else his place
	for _, pi := range append([]fwk.PodInfo(nil), info.GetPods()...) {
		if uid := pi.GetPod().UID; !gone[uid] && !ended[uid] {
			continue
		}
		if gone[pi.GetPod().UID] {
			leaves.pods = append(leaves.pods, pi.GetPod())
		}
		if err := info.RemovePod(logger, pi.GetPod()); err != nil {
			return victims.Fails
		}
		if status := t.handle.RunPreFilterExtensionRemovePod(ctx, state, t.pod, pi, info); !status.IsSuccess() {
			return victims.Fails
		}
	}
	switch status := t.handle.RunFilterPluginsWithNominatedPods(ctx, state, t.pod, info); {
	case status.IsSuccess():
		return t.extenders.fit(ctx, info, leaves)
	case status.Code() == fwk.UnschedulableAndUnresolvable:
		return victims.Never
	}
	return victims.Fails
}
