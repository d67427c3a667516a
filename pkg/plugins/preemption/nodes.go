package preemption

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
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

// nodeInfo is a copy of what the cycle knows of a node, with the node as the informer has
// it: the cycle may be there because the node changed, and have begun too early to know.
func (pl *Plugin) nodeInfo(name string) (fwk.NodeInfo, error) {
	info, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		return nil, err
	}
	info = info.Snapshot()
	if now, err := pl.lister.Get(name); err == nil && now != info.Node() {
		info.SetNode(now)
	}
	return info, nil
}

// refusedBy says why the filters refuse the node that a pod holds even without the pods
// that it waits for; empty if they may pass once those are gone.
func (pl *Plugin) refusedBy(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, h *reservations.Hold) string {
	info, err := pl.nodeInfo(h.Node)
	if err != nil {
		return "" // it was deleted since the cycle began; the store will hear of it
	}
	state = state.Clone()
	state.Write(reservation.PlanningKey, reservation.Planning{})
	for _, pi := range slices.Clone(info.GetPods()) {
		if !slices.Contains(h.Victims, pi.GetPod().UID) {
			continue
		}
		if info.RemovePod(klog.FromContext(ctx), pi.GetPod()) != nil || !pl.handle.RunPreFilterExtensionRemovePod(ctx, state, pod, pi, info).IsSuccess() {
			return ""
		}
	}
	status := pl.handle.RunFilterPlugins(ctx, state, pod, info)
	if status.Code() != fwk.UnschedulableAndUnresolvable || status.Plugin() == reservation.Name {
		return ""
	}
	return status.Message()
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
