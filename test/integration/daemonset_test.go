package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// daemonQueues are a queue of DaemonSets and one of pods that fill nodes. Neither has a
// guarantee.
const daemonQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: daemons
    - name: fills
`

// createDaemonSet makes a DaemonSet with pods in the group and, if they are of the
// managed profile, in queue root.daemons.
func (e *env) createDaemonSet(name string, options ...podOption) *appsv1.DaemonSet {
	e.Helper()
	p := e.pod("", name, append([]podOption{inQueue("root.daemons")}, options...)...)
	set := expect.Get(suite.client.AppsV1().DaemonSets(e.ns).Create(e.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: e.selector(name), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec,
		}},
	}, metav1.CreateOptions{}))(e)
	e.Cleanup(func() { // or it would recreate the pods that the test removes in the end
		// The error is that the test itself has deleted it.
		_ = suite.client.AppsV1().DaemonSets(e.ns).Delete(context.Background(), name, inBackground())
	})
	return set
}

// awaitWaiting waits until a group has pods that wait for a node, and returns them.
func (e *env) awaitWaiting(of string, n int) []*corev1.Pod {
	e.Helper()
	var out []*corev1.Pod
	eventually(e, patience, "pods of group "+of+" wait", func() (bool, string) {
		_, out = e.podsOf(of)
		return len(out) == n, ""
	})
	return out
}

// TestDaemonSetOnAFullCluster checks that a DaemonSet gets its pods onto full nodes, that
// room is made for one pod on each and no more, although its queue has no guarantee, and
// that every pod involved says why.
func TestDaemonSetOnAFullCluster(t *testing.T) {
	e := setup(t, daemonQueues)
	e.useNodes(3, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.fill("filler", 12, inQueue("root.fills"), stopsAfter(300*time.Millisecond))
	began := time.Now()
	e.createDaemonSet("agent")
	e.expect("agent", 3, 0, "")
	t.Logf("the DaemonSet runs on three full nodes after %v", time.Since(began).Round(time.Millisecond))
	victims := c.expectEvicted("filler", 3)
	nodes := map[string]bool{}
	for _, v := range victims {
		nodes[v.pod.Spec.NodeName] = true
		if last := c.lastOf(v.pod.UID); !conditionIs(last, corev1.DisruptionTarget, corev1.ConditionTrue) {
			t.Errorf("pod %s was evicted without condition %s", v.pod.Name, corev1.DisruptionTarget)
		}
		e.awaitEvent(v.pod, "", "can run on node "+v.pod.Spec.NodeName+" only", "D4")
	}
	if len(nodes) != 3 {
		t.Errorf("the victims ran on %d nodes, want one on each of 3", len(nodes))
	}
	running, _ := e.podsOf("agent")
	for _, p := range running {
		c.awaitPlaced(p)
		e.awaitEvent(p, "", "the only one it can run on", p.Spec.NodeName)
	}
	c.expectNoMore(calm, 3, "filler")
	e.expectBooks()
}

// TestDaemonSetPodsGoFirstOnNewNodes: on each of some new nodes a pod of a DaemonSet and an
// older ordinary pod want all room. The first gets it, and no pod is preempted. The
// controller makes the pods of a DaemonSet once it has seen the node, and no room is kept
// before, so the scheduler starts when they exist. One that runs meanwhile may hear of a node
// before it hears of the pod there: they have different watches.
func TestDaemonSetPodsGoFirstOnNewNodes(t *testing.T) {
	const n = 8
	e := setup(t, daemonQueues)
	e.nodePool = e.id
	c := e.keepHistory()
	e.kill()
	e.create("filler", n, inQueue("root.fills"), requests("cpu", "4")) // not tried yet, so none backs off
	e.createDaemonSet("agent", requests("cpu", "4"))
	e.addNodes(n, localcluster.NodeSpec{CPU: "4"})
	e.awaitWaiting("agent", n)
	e.start()
	e.expect("agent", n, 0, "")
	c.expectNoMore(calm, 0, "agent")
	for _, s := range c.boundByNow("filler") {
		t.Errorf("pod %s got node %s, where a pod of the DaemonSet waited", s.pod.Name, s.pod.Spec.NodeName)
	}
	e.expectBooks()
}

// TestDaemonSetPodsGoFirstOnGrownNodes: on each of some nodes, which are too small, a pod of a
// DaemonSet and an older ordinary pod wait. When a node grows, the first gets it, also where
// the scheduler has seen the change before the store has.
func TestDaemonSetPodsGoFirstOnGrownNodes(t *testing.T) {
	const n = 8
	e := setup(t, daemonQueues)
	nodes := e.useNodes(n, localcluster.NodeSpec{CPU: "2"})
	c := e.keepHistory()
	e.create("filler", n, inQueue("root.fills"), requests("cpu", "4"))
	e.createDaemonSet("agent", requests("cpu", "4"))
	e.awaitWaiting("agent", n)
	c.expectNoMore(calm, 0, "filler", "agent")
	for _, node := range nodes {
		e.setNode(node, `{"status":{"capacity":{"cpu":"4"},"allocatable":{"cpu":"4"}}}`, "status")
	}
	e.expect("agent", n, 0, "")
	c.expectNoMore(calm, 0, "filler", "agent")
	for _, s := range c.boundByNow("filler") {
		t.Errorf("pod %s got node %s, where a pod of the DaemonSet waited", s.pod.Name, s.pod.Spec.NodeName)
	}
	e.expectBooks()
}

// TestDaemonSetHoldsEnd checks what ends the hold of a DaemonSet pod, that the reason is
// reported, and that nothing is stuck afterwards. The delay before preemption is an hour,
// so the node is only held.
func TestDaemonSetHoldsEnd(t *testing.T) {
	e := setup(t, daemonQueues, twoProfiles, reservation("preemptionStartDelay", "1h"))
	node := e.useNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
	e.priorityClass("high", 1000, neverPreempts) // above the priorities for which upstream respects nominated pods
	c := e.keepHistory()
	e.fill("filler", 3, inQueue("root.fills"))
	e.createDaemonSet("agent", requests("cpu", "2"))
	first := e.awaitWaiting("agent", 1)[0]
	e.awaitHeld(first, corev1.ConditionTrue, reasons.RoomAwaited)
	e.awaitEvent(first, "", "preemptionStartDelay")
	e.awaitExplained(first, reasons.RoomAwaited)
	small := e.create("small", 1, ofProfile(corev1.DefaultSchedulerName), requests("cpu", "100m"), ofPriority(e.id+"-high"))[0]
	e.awaitTold(small, "held")

	e.setNode(node, `{"spec":{"unschedulable":true}}`)
	e.awaitHeld(first, corev1.ConditionFalse, reasons.HoldNodeUnschedulable)
	e.setNode(node, `{"spec":{"unschedulable":false}}`)
	e.awaitHeld(first, corev1.ConditionTrue, reasons.RoomAwaited)

	e.setNode(node, `{"spec":{"taints":[{"key":"integration","effect":"NoSchedule"}]}}`)
	e.awaitHeld(first, corev1.ConditionFalse, reasons.RoomImpossible)
	e.awaitEvent(first, "", "node "+node)
	e.setNode(node, `{"spec":{"taints":null}}`)
	e.awaitHeld(first, corev1.ConditionTrue, reasons.RoomAwaited)

	// Another template: the pod is replaced by one that holds the node anew.
	expect.Get(suite.client.AppsV1().DaemonSets(e.ns).Patch(t.Context(), "agent", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"integration/version":"2"}}}}}`), metav1.PatchOptions{}))(e)
	e.awaitGone(first)
	e.awaitEnded(first, reservations.Deleted)
	second := e.awaitWaiting("agent", 1)[0]
	e.awaitHeld(second, corev1.ConditionTrue, reasons.RoomAwaited)

	// The DaemonSet is deleted: the node is free for others. The small pod may have got
	// room between two earlier holds, but not this one.
	late := e.create("late", 1, ofProfile(corev1.DefaultSchedulerName), requests("cpu", "100m"), ofPriority(e.id+"-high"))[0]
	e.awaitTold(late, "is held for pod "+e.ns+"/"+second.Name)
	e.ok(suite.client.AppsV1().DaemonSets(e.ns).Delete(t.Context(), "agent", inBackground()))
	e.expectNone("agent")
	e.awaitEnded(second, reservations.GivenUp) // without its DaemonSet it is an ordinary pod until it is deleted
	e.awaitRunning(small)
	e.awaitRunning(late)

	// The node is removed while it is held.
	e.createDaemonSet("last", requests("cpu", "2"))
	last := e.awaitWaiting("last", 1)[0]
	e.awaitHeld(last, corev1.ConditionTrue, reasons.RoomAwaited)
	c.expectNoMore(calm, 0, "filler") // no pod was preempted in all that time
	e.ok(removeNodes(t.Context(), node))
	e.awaitEnded(last, reservations.NodeGone) // the pod, and its condition, disappear with its node at once
	e.ok(suite.client.AppsV1().DaemonSets(e.ns).Delete(t.Context(), "last", inBackground()))
	e.expectNone("last")

	// All holds of a DaemonSet end with it.
	nodes := e.addNodes(2, localcluster.NodeSpec{CPU: "4"})
	for i, node := range nodes {
		e.fill(fmt.Sprintf("full-%d", i), 1, inQueue("root.fills"), requests("cpu", "3"), onNode(node))
	}
	e.createDaemonSet("all", requests("cpu", "2"))
	all := e.awaitWaiting("all", len(nodes))
	for _, p := range all {
		e.awaitHeld(p, corev1.ConditionTrue, reasons.RoomAwaited)
	}
	e.ok(suite.client.AppsV1().DaemonSets(e.ns).Delete(t.Context(), "all", inBackground()))
	for _, p := range all {
		e.awaitEnded(p, reservations.GivenUp)
	}
	for i, node := range nodes {
		e.fill(fmt.Sprintf("free-%d", i), 1, inQueue("root.fills"), requests("cpu", "1"), onNode(node))
	}
	e.expectBooks()
}

// awaitHeld waits until the condition that reports the hold of a pod has a status.
func (e *env) awaitHeld(p *corev1.Pod, status corev1.ConditionStatus, why reasons.Code) {
	e.Helper()
	e.awaitPod(p, fmt.Sprintf("has condition %s=%s, %s", held, status, why), func(p *corev1.Pod) bool {
		c := conditionOf(p, held)
		return c != nil && c.Status == status && c.Reason == string(why)
	})
}

// awaitEnded waits for the log line that says how the last hold of a pod ended. If the
// pod is gone, that line is all that is left of it.
func (e *env) awaitEnded(p *corev1.Pod, how reservations.End) {
	e.Helper()
	eventually(e, patience, fmt.Sprintf("the log says that the hold of pod %s has ended: %s", p.Name, how), func() (bool, string) {
		line := e.lastLogLine(`"A hold has ended"`, fmt.Sprintf("pod=%q", p.Namespace+"/"+p.Name))
		return strings.Contains(line, fmt.Sprintf("ended=%q", how)), line
	})
}

// setNode patches a node.
func (e *env) setNode(name, patch string, subresources ...string) {
	e.Helper()
	expect.Get(suite.client.CoreV1().Nodes().Patch(e.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...))(e)
}
