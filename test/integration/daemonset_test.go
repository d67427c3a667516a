package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

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

// TestDaemonSetHoldsEnd checks that the nodes that the pods of a DaemonSet hold are kept
// from others, and that the holds end with the pods, and all of them with the DaemonSet. The
// delay before preemption is an hour, so the nodes are only held.
func TestDaemonSetHoldsEnd(t *testing.T) {
	e := setup(t, daemonQueues, twoProfiles, reservation("preemptionStartDelay", "1h"))
	nodes := e.useNodes(3, localcluster.NodeSpec{CPU: "4"})
	e.priorityClass("high", 1000, neverPreempts) // above the priorities for which upstream respects nominated pods
	c := e.keepHistory()
	var fillers []string
	for i, node := range nodes {
		fillers = append(fillers, fmt.Sprintf("filler-%d", i))
		e.fill(fillers[i], 3, inQueue("root.fills"), onNode(node))
	}
	e.createDaemonSet("agent", requests("cpu", "2"))
	first := e.awaitWaiting("agent", len(nodes))
	for _, p := range first {
		e.awaitHeld(p, reasons.RoomAwaited)
		e.awaitEvent(p, "", "preemptionStartDelay")
	}
	small := e.create("small", 1, ofProfile(corev1.DefaultSchedulerName), requests("cpu", "100m"), ofPriority(e.id+"-high"))[0]
	e.awaitTold(small, "held")

	// Another template: the pods are replaced by others that hold the nodes anew.
	expect.Get(suite.client.AppsV1().DaemonSets(e.ns).Patch(t.Context(), "agent", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"integration/version":"2"}}}}}`), metav1.PatchOptions{}))(e)
	for _, p := range first {
		e.awaitGone(p)
		e.awaitEnded(p, reservations.Deleted)
	}
	second := e.awaitWaiting("agent", len(nodes))
	for _, p := range second {
		e.awaitHeld(p, reasons.RoomAwaited)
	}

	// The DaemonSet is deleted: all nodes are free for others. The small pod may have got
	// room between two earlier holds, but not this one.
	late := e.create("late", 1, ofProfile(corev1.DefaultSchedulerName), requests("cpu", "100m"), ofPriority(e.id+"-high"))[0]
	for _, p := range second {
		e.awaitTold(late, "is held for pod "+e.ns+"/"+p.Name)
	}
	e.ok(suite.client.AppsV1().DaemonSets(e.ns).Delete(t.Context(), "agent", inBackground()))
	e.expectNone("agent")
	for _, p := range second {
		e.awaitEnded(p, reservations.GivenUp) // without its DaemonSet it is an ordinary pod until it is deleted
	}
	e.awaitRunning(small)
	e.awaitRunning(late)
	for i, node := range nodes {
		e.fill(fmt.Sprintf("free-%d", i), 1, inQueue("root.fills"), requests("cpu", "500m"), onNode(node))
	}
	c.expectNoMore(calm, 0, fillers...) // no pod was preempted in all that time
	e.expectBooks()
}

// awaitHeld waits until a pod holds a node, by its condition, for the reason.
func (e *env) awaitHeld(p *corev1.Pod, why reasons.Code) {
	e.Helper()
	e.awaitPod(p, "holds a node: "+string(why), func(p *corev1.Pod) bool {
		c := conditionOf(p, held)
		return c != nil && c.Status == corev1.ConditionTrue && c.Reason == string(why)
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
