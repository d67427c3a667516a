package preemption

import (
	"context"

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
	// leaving are the pods that go anyway, by node.
	leaving map[string][]*victims.Pod
}

func newTrial(h fwk.Handle, state fwk.CycleState, pod *corev1.Pod, w *victims.World) *trial {
	t := &trial{handle: h, state: state, pod: pod, leaving: map[string][]*victims.Pod{}}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		for _, p := range n.Pods {
			if p.Protection == victims.Leaving {
				t.leaving[n.Name] = append(t.leaving[n.Name], p)
			}
		}
	}
	return t
}

// fits tells whether the filters pass on the node once the pods, and those that
// leave it anyway, are gone. Pods nominated there count as upstream counts them.
func (t *trial) fits(ctx context.Context, node string, without []*victims.Pod) victims.Fit {
	info, err := t.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return victims.Never // it was deleted since the cycle began
	}
	gone := make(map[types.UID]bool, len(without)+len(t.leaving[node]))
	for _, p := range without {
		gone[types.UID(p.UID)] = true
	}
	for _, p := range t.leaving[node] {
		gone[types.UID(p.UID)] = true
	}
	info, state := info.Snapshot(), t.state.Clone()
	state.Write(reservation.PlanningKey, reservation.Planning{})
	logger := klog.FromContext(ctx)
	for _, pi := range append([]fwk.PodInfo(nil), info.GetPods()...) {
		if !gone[pi.GetPod().UID] {
			continue
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
		return victims.Passes
	case status.Code() == fwk.UnschedulableAndUnresolvable:
		return victims.Never
	}
	return victims.Fails
}
