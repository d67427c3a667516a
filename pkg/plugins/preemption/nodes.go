package preemption

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// candidates are the nodes of the world on which pods that go might help: those
// whose filters refused for a reason that such pods may be. A node that was
// refused only because others hold it counts, too: a plan may join them.
func candidates(w *victims.World, statuses fwk.NodeToStatusReader) []*victims.Node {
	out := make([]*victims.Node, 0, len(w.Nodes))
	for _, n := range w.Nodes {
		status := statuses.Get(n.Name)
		if status.Code() == fwk.Unschedulable || status.Plugin() == reservation.Name {
			out = append(out, n)
		}
	}
	return out
}

// barred makes up for the filters' part of a cycle that a quota ended before them:
// nobody asked the nodes. It lists those that refuse whatever pods go. Their pods
// are in the world all the same: they may go for the quota.
func (pl *Plugin) barred(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []*victims.Node) map[string]bool {
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
