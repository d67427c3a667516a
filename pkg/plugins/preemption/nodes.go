package preemption

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// candidates are the nodes of the world on which pods that go might help: those
// whose filters refused for a reason that such pods may be. A node that was
// refused only because others hold it counts, too: a plan may join them.
//
// After a quota's refusal the statuses are no evidence: nobody asked the nodes.
// Then all are candidates, and the trial finds out.
func candidates(w *victims.World, statuses fwk.NodeToStatusReader, asked bool) []*victims.Node {
	if !asked {
		return w.Nodes
	}
	out := make([]*victims.Node, 0, len(w.Nodes))
	for _, n := range w.Nodes {
		status := statuses.Get(n.Name)
		if status.Code() == fwk.Unschedulable || status.Plugin() == reservation.Name {
			out = append(out, n)
		}
	}
	return out
}
