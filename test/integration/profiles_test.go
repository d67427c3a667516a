package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestProfilesShareNodes checks that pods of both profiles together fill nodes completely
// without overcommitting them, and that neither profile starves the other.
func TestProfilesShareNodes(t *testing.T) {
	e := setup(t, oneLeaf("100"), twoProfiles)
	e.useNodes(2, localcluster.NodeSpec{CPU: "8"})
	for i := range 10 {
		e.createPod(e.pod(fmt.Sprintf("q-%d", i), "q", inQueue("root.a")))
		e.createPod(e.pod(fmt.Sprintf("d-%d", i), "d", ofProfile(corev1.DefaultSchedulerName)))
	}
	eventually(t, patience, "the nodes are full", func() (bool, string) {
		q, _ := e.podsOf("q")
		d, _ := e.podsOf("d")
		return len(q)+len(d) == 16, ""
	})
	q, _ := e.podsOf("q")
	d, _ := e.podsOf("d")
	if len(q) < 6 || len(d) < 6 {
		t.Errorf("of 16 places pods of queues have %d, the others %d", len(q), len(d))
	}
	for _, p := range append(q, d...) {
		e.delete(p)
	}
	e.expect("q", 10-len(q), 0, "")
	e.expect("d", 10-len(d), 0, "")
}

// TestToldQuotaThenNode checks that a pod's message about its quota does not outlast the
// reason: once the pod is admitted, the condition says so, whether or not a node can take
// it.
func TestToldQuotaThenNode(t *testing.T) {
	e := setup(t, oneLeaf("4"))
	e.useNodes(1, localcluster.NodeSpec{CPU: "8"})
	foreign := e.pod("foreign", "foreign", requests("cpu", "4"))
	foreign.Spec.NodeName = e.id + "-node-0000" // bound by hand, as another scheduler would
	foreign.Spec.SchedulerName = "somebody-else"
	foreign = e.createPod(foreign)
	e.awaitRunning(foreign)
	holder := e.create("holder", 1, inQueue("root.a"), requests("cpu", "4"))[0]
	e.awaitRunning(holder)
	waiting := e.create("waiting", 1, inQueue("root.a"), requests("cpu", "4"))[0]
	e.awaitRefused(waiting, reasons.OverMax)

	second := e.pod("second", "foreign", requests("cpu", "4"))
	second.Spec.NodeName, second.Spec.SchedulerName = foreign.Spec.NodeName, foreign.Spec.SchedulerName
	e.configure(oneLeaf("3"))
	e.delete(holder)
	e.awaitGone(holder)
	e.awaitRunning(e.createPod(second))
	e.configure(oneLeaf("4"))

	e.awaitEvent(waiting, "FailedScheduling", "Insufficient cpu")
	e.awaitPod(waiting, "is told that the quota is not in its way any more", func(p *corev1.Pod) bool {
		c := admitted(p)
		return c != nil && c.Status == corev1.ConditionTrue
	})
	e.delete(foreign)
	if c := admitted(e.awaitRunning(waiting)); c.Status != corev1.ConditionTrue {
		t.Errorf("a running pod has condition %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
}
