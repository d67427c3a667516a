package preemption

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// candidates returns the nodes of the snapshot on which preemption might help: those that
// the filters rejected for a reason that pods may cause. A node that was rejected only
// because other pods hold it counts, too: a plan may join its holders.
func candidates(planning *planner.Snapshot, statuses fwk.NodeToStatusReader) []*planner.Node {
	out := make([]*planner.Node, 0, len(planning.Nodes))
	for _, n := range planning.Nodes {
		status := statuses.Get(n.Name)
		if status.Code() == fwk.Unschedulable || status.Plugin() == reservation.Name {
			out = append(out, n)
		}
	}
	return out
}

// nodeInfo returns a copy of what the cycle knows of a node, with the node as the
// informer has it. A change of the node may have caused the cycle, and the snapshot may
// be older than the change.
func (pl *Plugin) nodeInfo(name string) (fwk.NodeInfo, error) {
	info, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		return nil, err
	}
	info = info.Snapshot()
	if now, err := pl.nodeLister.Get(name); err == nil && now != info.Node() {
		info.SetNode(now)
	}
	return info, nil
}

// refusedBy says why the filters reject the node that a pod holds even without the pods
// that it waits for. It is empty if they may accept once those are gone.
func (pl *Plugin) refusedBy(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, h *reservations.Hold) string {
	info, err := pl.nodeInfo(h.Node)
	if err != nil {
		return "" // deleted since the cycle began; an event for the store follows
	}
	state = state.Clone()
	state.Write(reservation.PlanningKey, reservation.Planning{})
	if _, ok := remove(ctx, pl.handle, state, pod, info, func(p *corev1.Pod) bool { return slices.Contains(h.Awaited, p.UID) }); !ok {
		return ""
	}
	status := pl.handle.RunFilterPlugins(ctx, state, pod, info)
	if status.Code() != fwk.UnschedulableAndUnresolvable || status.Plugin() == reservation.Name {
		return ""
	}
	return status.Message()
}

// rejectedAnyway replaces the filters of a cycle that a quota ended before they ran. It
// returns the nodes that reject the pod whatever pods leave; nil if there are no nodes. The
// pods of these nodes stay in the snapshot: they may be preempted for the quota.
func (pl *Plugin) rejectedAnyway(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []*planner.Node) map[string]bool {
	if len(nodes) == 0 {
		return nil
	}
	state = state.Clone()
	state.Write(reservation.PlanningKey, reservation.Planning{})
	infos := pl.handle.SnapshotSharedLister().NodeInfos()
	never := make([]bool, len(nodes))
	pl.handle.Parallelizer().Until(ctx, len(nodes), func(i int) {
		info, err := infos.Get(nodes[i].Name)
		never[i] = err != nil || // it was deleted since the cycle began
			pl.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info).Code() == fwk.UnschedulableAndUnresolvable
	}, Name)
	out := map[string]bool{}
	for i, n := range nodes {
		if never[i] {
			out[n.Name] = true
		}
	}
	return out
}
