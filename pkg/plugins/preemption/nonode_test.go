package preemption

import (
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestNoNodeCountsTheNodes: the text counts nodes by what was missing, and omits what is
// outdated a moment later.
func TestNoNodeCountsTheNodes(t *testing.T) {
	full, absent := fwk.NewStatus(fwk.Unschedulable, "Insufficient cpu"), fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "had a taint")
	two := fwk.NewStatus(fwk.Unschedulable, "Insufficient memory", "Insufficient cpu")
	some := framework.NewNodeToStatus(map[string]*fwk.Status{"n1": full, "n2": two, "n3": full}, absent)
	all := framework.NewNodeToStatus(map[string]*fwk.Status{"n1": full}, absent)
	law := reasons.New(reasons.PreemptionRefused, "no pod may go")
	for _, c := range []struct {
		name     string
		statuses fwk.NodeToStatusReader
		nodes    int
		why      reasons.Reason
		want     string
	}{
		{"each by its reasons", some, 3, law, "none of 3 nodes could take the pod: 3 Insufficient cpu, 1 Insufficient memory; no pod may go"},
		{"those that no filter saw", some, 5, law, "none of 5 nodes could take the pod: 3 Insufficient cpu, 1 Insufficient memory, 2 had a taint; no pod may go"},
		{"more than the lister has", some, 1, law, "none of 3 nodes could take the pod: 3 Insufficient cpu, 1 Insufficient memory; no pod may go"},
		{"it waits for its delay", all, 1, reasons.New(reasons.PreemptionDelayed, "in 3s"), "none of 1 nodes could take the pod: 1 Insufficient cpu"},
		{"its turn comes", all, 1, reasons.New(reasons.PreemptionPaced, "in the next round"), "none of 1 nodes could take the pod: 1 Insufficient cpu"},
		{"nothing more is known", all, 1, reasons.Reason{}, "none of 1 nodes could take the pod: 1 Insufficient cpu"},
		{"no node", framework.NewNodeToStatus(nil, absent), 0, law, "no node could take the pod; no pod may go"},
		{"no statuses", nil, 3, law, "no node could take the pod; no pod may go"},
	} {
		if got := noNode(c.statuses, c.nodes, c.why); got.Code != reasons.NoNodeFits || got.Text != c.want {
			t.Errorf("%s: %s %q, want %q", c.name, got.Code, got.Text, c.want)
		}
	}
}
