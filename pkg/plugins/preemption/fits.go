package preemption

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

// trial runs the scheduler's own filters for nodes without some of their pods. It is the
// only place where the rules of queues and of nodes meet. It changes copies only.
type trial struct {
	handle   fwk.Handle
	state    fwk.CycleState
	pod      *corev1.Pod
	snapshot *planner.Snapshot
	// exists reports whether a pod in the snapshot still exists. The store may have heard
	// of the end of a pod before the snapshot did, and informers hear of it before both.
	// Nil if the snapshot has no such pods.
	exists func(*corev1.Pod) bool
	// extenders are called after the filters.
	extenders *extenders
}

func newTrial(handle fwk.Handle, state fwk.CycleState, pod *corev1.Pod, planning *planner.Snapshot, exists func(*corev1.Pod) bool) *trial {
	return &trial{
		handle:    handle,
		state:     state,
		pod:       pod,
		snapshot:  planning,
		exists:    exists,
		extenders: newExtenders(handle, pod),
	}
}

// pods returns the pods of a node as the store has them.
func (t *trial) pods(node string) []*planner.Pod {
	at, found := slices.BinarySearchFunc(t.snapshot.Nodes, node, func(n *planner.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return nil
	}
	return t.snapshot.Nodes[at].Pods
}

// uidsOf returns the UIDs of pods.
func uidsOf(pods []*planner.Pod) map[types.UID]bool {
	uids := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		uids[types.UID(p.UID)] = true
	}
	return uids
}

// fits reports whether the filters and the extenders accept the node without the given
// pods and without those that leave it in any case. Pods nominated to the node count as
// in upstream.
func (t *trial) fits(ctx context.Context, node string, without []*planner.Pod) planner.Fit {
	info, err := t.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return planner.Never // the node was deleted since the cycle began
	}
	pods := t.pods(node)
	known, gone := uidsOf(pods), uidsOf(without)
	for _, p := range pods {
		if p.Protection == planner.Leaving {
			gone[types.UID(p.UID)] = true
		}
	}
	info, state := info.Snapshot(), t.state.Clone()
	state.Write(reservation.PlanningKey, reservation.Planning{})
	going := t.extenders.newRemoval(without, t.snapshot.Budgets)
	removed, ok := remove(ctx, t.handle, state, t.pod, info, func(pod *corev1.Pod) bool {
		// A pod that ended since the snapshot was made would cost another pod its place.
		ended := t.exists != nil && !known[pod.UID] && !t.exists(pod)
		return ended || gone[pod.UID]
	})
	if !ok {
		return planner.Fails
	}
	going.pods = slices.DeleteFunc(removed, func(pod *corev1.Pod) bool { return !gone[pod.UID] })
	return t.extenders.afterFilters(ctx, t.handle.RunFilterPluginsWithNominatedPods(ctx, state, t.pod, info), info, going)
}

// remove removes the pods that are gone from a node of a cycle, and returns these. ok is false if the
// filters do not support it.
func remove(
	ctx context.Context, handle fwk.Handle, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo, gone func(*corev1.Pod) bool,
) (removed []*corev1.Pod, ok bool) {
	logger := klog.FromContext(ctx)
	for _, pi := range slices.Clone(info.GetPods()) {
		if !gone(pi.GetPod()) {
			continue
		}
		if info.RemovePod(logger, pi.GetPod()) != nil || !handle.RunPreFilterExtensionRemovePod(ctx, state, pod, pi, info).IsSuccess() {
			return nil, false
		}
		removed = append(removed, pi.GetPod())
	}
	return removed, true
}
