package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

const noGates = `{"spec":{"schedulingGates":null}}`

// TestSchedulingGates checks that pods with scheduling gates of their own take no place
// in the window, even the smallest, and get no message about queues.
func TestSchedulingGates(t *testing.T) {
	e := setup(t, oneLeaf("3"), queueSort("window", 1), queueSort("maxWindow", 1))
	closed := e.create("gated", 5, inQueue("root.a"), gated)
	e.create("p", 2, inQueue("root.a"))
	e.expectStill("p", 2, 0, "")
	for _, p := range closed {
		if c := admitted(e.get(p)); c != nil {
			t.Errorf("a pod with gates of its own has condition %v", c)
		}
	}
	e.patch(closed[0], noGates)
	e.awaitRunning(closed[0])
	e.expectStill("gated", 1, 4, "")
}

// TestGateOpensIntoFullQueue checks that no pod slips through when its gates open while
// its queue is full. The scheduler and the test see that at the same time, in any order.
func TestGateOpensIntoFullQueue(t *testing.T) {
	e := setup(t, oneLeaf("1"))
	holder := e.create("holder", 1, inQueue("root.a"))[0]
	e.awaitRunning(holder)
	closed := e.create("gated", 40, inQueue("root.a"), gated)
	for _, p := range closed {
		e.patch(p, noGates)
	}
	e.expectStill("gated", 0, 40, reasons.OverMax)
	e.delete(holder)
	e.expectStill("gated", 1, 39, reasons.OverMax)
	e.expectBooks()
}

// TestFinishedPods checks that pods that succeed or fail release their quota while their
// objects still exist.
func TestFinishedPods(t *testing.T) {
	e := setup(t, oneLeaf("1"))
	once := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	e.create("done", 3, inQueue("root.a"), annotated(nodeagent.AnnotationCompleteAfter, "200ms"), once)
	eventually(t, patience, "all three have run, one after the other", func() (bool, string) {
		running, waiting := e.podsOf("done")
		return len(running)+len(waiting) == 0, ""
	})
	e.awaitQueue("root.a", "is empty", func(q *documents.Queue) bool { return used(q) == 0 })
}
