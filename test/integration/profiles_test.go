package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestDefaultProfile checks, with the configuration for two profiles, that pods of
// default-scheduler run as usual while queues are full and their pods wait.
func TestDefaultProfile(t *testing.T) {
	e := setup(t, oneLeaf("2"), twoProfiles)
	e.create("held", 40, inQueue("root.a"))
	e.expect("held", 2, 38, "")
	e.create("other", 10, ofProfile(corev1.DefaultSchedulerName), inQueue("root.a")) // the label has no meaning here
	e.expect("other", 10, 0, "")
	e.expectStill("held", 2, 38, reasons.OverMax)
	other, _ := e.podsOf("other")
	for _, p := range other {
		if c := admitted(p); c != nil {
			t.Errorf("pod %s of default-scheduler has condition %v", p.Name, c)
		}
	}
	e.expectBooks() // pods of default-scheduler do not count
}

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

// TestNoNodeFits checks that an admitted pod that fits no node gets the scheduler's own
// message, does not block others, and runs when it can.
func TestNoNodeFits(t *testing.T) {
	e := setup(t, oneLeaf("100"))
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	holder := e.create("holder", 1, inQueue("root.a"), requests("cpu", "3"))[0]
	e.awaitRunning(holder)
	big := e.create("big", 3, inQueue("root.a"), requests("cpu", "2"))
	for _, p := range big {
		e.awaitEvent(p, "FailedScheduling", "Insufficient cpu")
	}
	e.awaitRunning(e.create("small", 1, inQueue("root.a"))[0])
	e.delete(holder)
	e.expect("big", 1, 2, "")
	e.expectBooks()
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
