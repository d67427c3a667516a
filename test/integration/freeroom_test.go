package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

const freeRoomQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: owed
      resources: {guaranteed: {vcore: 3}}
      properties: {preemption.delay: 1s}
    - name: loose
      properties: {preemption.delay: 1s}
`

// TestFreeRoomGoesToThePodThatWouldPreempt: a pod ends by itself while a pod of a queue
// below its guarantee and a pod of a queue without one wait. The first of the two gets the
// room, although the share of its queue is larger, and no pod is preempted.
func TestFreeRoomGoesToThePodThatWouldPreempt(t *testing.T) {
	e := setup(t, freeRoomQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	ends := e.createPod(e.pod("ends", "ends", inQueue("root.owed")))
	e.awaitRunning(ends)
	e.fill("owed", 2, inQueue("root.owed"))
	e.fill("loose", 1, inQueue("root.loose"))
	borrower := e.createPod(e.pod("borrower", "loose", inQueue("root.loose")))
	heir := e.createPod(e.pod("heir", "heir", inQueue("root.owed")))
	e.awaitWaiting("loose", 1)
	e.awaitWaiting("heir", 1)
	e.patch(ends, fmt.Sprintf(`{"metadata":{"annotations":{%q:"1ms"}}}`, nodeagent.AnnotationCompleteAfter))
	e.awaitPod(ends, "it has ended", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	e.awaitRunning(heir)
	c.expectNoMore(calm/2, 0, "owed", "loose", "heir")
	if node, _ := c.boundAt(borrower.UID); node != "" {
		t.Errorf("pod %s of the queue without a guarantee is on node %s", borrower.Name, node)
	}
}

// TestRoomOfLeavingPodsIsNotHeld: the owner deletes a pod of a queue that is below its
// guarantee once that pod is gone. A pod of a queue without a guarantee, past its
// preemption.delay, would fit then. It does not hold the node: a younger pod of the first
// queue gets the room, and no pod is preempted.
func TestRoomOfLeavingPodsIsNotHeld(t *testing.T) {
	e := setup(t, freeRoomQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	leaves := e.createPod(e.pod("leaves", "leaves", inQueue("root.owed"), stopsAfter(5*time.Minute)))
	e.awaitRunning(leaves)
	e.fill("owed", 2, inQueue("root.owed"))
	e.fill("loose", 1, inQueue("root.loose"))
	borrower := e.createPod(e.pod("borrower", "loose", inQueue("root.loose"), gated))
	e.delete(leaves)
	e.awaitPod(leaves, "terminates", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	e.awaitYounger(borrower) // its preemption.delay is over: its first cycle asks for a plan
	e.patch(borrower, `{"spec":{"schedulingGates":null}}`)
	e.awaitTold(borrower, string(reasons.WaitingForRoom))
	heir := e.createPod(e.pod("heir", "heir", inQueue("root.owed")))
	e.awaitTold(heir, string(reasons.PreemptionRefused)) // the pod that leaves counts for law 4
	e.endAtOnce(leaves)
	e.awaitRunning(heir)
	c.expectNoMore(calm/2, 0, "owed", "loose", "heir")
	for _, p := range []*corev1.Pod{borrower, heir} {
		if claim, at := c.claim(p.UID); !at.IsZero() {
			t.Errorf("pod %s held a node: %+v", p.Name, claim)
		}
	}
	if node, _ := c.boundAt(borrower.UID); node != "" {
		t.Errorf("pod %s of the queue without a guarantee is on node %s", borrower.Name, node)
	}
}

func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
}

// TestNodesAreWantedForAsManyPodsAsMayRun: 40 pods find no node, and the max of their
// queue lets ten of them run. Autoscalers add nodes for pods with reason Unschedulable,
// so exactly ten have it. When the max changes, the number follows, also across a
// restart.
func TestNodesAreWantedForAsManyPodsAsMayRun(t *testing.T) {
	e := setup(t, oneLeaf("10"))
	e.create("p", 40, inQueue("root.a"), findsNoNode)
	e.expectWanted("p", 40, 10)
	e.configure(oneLeaf("3"))
	e.expectWanted("p", 40, 3)
	e.kill()
	e.start()
	e.expectWanted("p", 40, 3)
	e.configure(oneLeaf("12"))
	e.expectWanted("p", 40, 12)
}

const wantedQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: user
      limits: [{limit: each, users: ["*"], maxresources: {vcore: 4}}]
    - {name: apps, maxapplications: 1}
    - name: free
`

// TestNodesAreWantedWithinLimits: pods find no node, and a limit of their user or
// maxapplications lets one of them run. Then 200 pods without a quota are wanted at once.
func TestNodesAreWantedWithinLimits(t *testing.T) {
	e := setup(t, wantedQueues)
	e.create("user", 10, inQueue("root.user"), requests("cpu", "3"), findsNoNode)
	e.create("apps", 5, inQueue("root.apps"), findsNoNode, func(p *corev1.Pod) { p.Labels[placement.KeyApplicationID] = p.Name })
	e.expectWanted("user", 10, 1)
	e.expectWanted("apps", 5, 1)
	expect.OK(t, e.createAtOnce("free", 0, 200, inQueue("root.free"), findsNoNode))
	made := time.Now()
	e.expectWanted("free", 200, 200)
	t.Logf("200 pods are wanted %v after the last was made", time.Since(made).Round(10*time.Millisecond))
}

func findsNoNode(p *corev1.Pod) { p.Spec.NodeSelector["example.com/pool"] = "grows" }

// wantedWithin is three times what the laws say, because other tests run beside.
const wantedWithin = 15 * time.Second

// expectWanted waits until so many of the pods of a group have reason Unschedulable, and
// all others reason SchedulingGated.
func (e *env) expectWanted(of string, all, want int) {
	e.Helper()
	eventually(e.T, wantedWithin, fmt.Sprintf("nodes are wanted for %d pods of %s", want, of), func() (bool, string) {
		_, waiting := e.podsOf(of)
		reasons := map[string]int{}
		for _, p := range waiting {
			if c := conditionOf(p, corev1.PodScheduled); c != nil {
				reasons[c.Reason]++
			}
		}
		return reasons[corev1.PodReasonUnschedulable] == want && reasons[corev1.PodReasonSchedulingGated] == all-want, fmt.Sprint(reasons)
	})
}
