package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// bySingle has one victim chosen that is no more than half larger or smaller than
// the request, else at most two.
func bySingle(s *settings) {
	reservation("victimSelection", []string{"single", "multiple"})(s)
	reservation("singleDeviationPercent", 50)(s)
	reservation("maxVictims", 2)(s)
}

// TestDaemonSetArguments runs a DaemonSet of two cores and a port over four full
// or hindered nodes, where the arguments of NodeReservation choose others than
// those who would go by default, or nobody.
func TestDaemonSetArguments(t *testing.T) {
	e := setup(t, daemonQueues, bySingle)
	n := e.useNodes(4, localcluster.NodeSpec{CPU: "6"})
	unlike, most, port, order := n[0], n[1], n[2], n[3]
	c := e.keepChronicle()
	e.fillInTurn([][]*corev1.Pod{
		{e.filler("app", "first", unlike, requests("cpu", "2")), e.filler("stays", "stays", order, requests("cpu", "2"))},
		{e.filler("app", "large", unlike, requests("cpu", "4")), e.filler("quick", "quick", order, requests("cpu", "2"))},
		{e.filler("port", "port", port, withHostPort(18081)), e.filler("slow", "slow", order, requests("cpu", "2"), stopsAfter(time.Hour))},
		{e.filler("aside", "aside", port)},
	})
	e.fill("small", 12, inQueue("root.fills"), onNode(most), requests("cpu", "500m"))
	e.createDaemonSet("agent", requests("cpu", "2"), withHostPort(18081))

	// An originator that is as large as the request, not a pod of twice its size.
	c.awaitPlaced(e.daemonOn("agent", unlike))
	seen := c.expectEvicted("app", 1)
	if seen[0].pod.Name != "first" {
		t.Errorf("pod %s was evicted, want first: the other one is twice the request", seen[0].pod.Name)
	}
	e.awaitNote(seen[0].pod, "class originator", "can run on node "+unlike+" only")

	// Nobody where too many would have to go.
	waits := e.daemonOn("agent", most)
	e.awaitHeld(waits, corev1.ConditionTrue, reasons.RoomAwaited)
	e.awaitNote(waits, "nobody is preempted", "by multiple (more victims than maxVictims: 4)")

	// Where there is room, the pod whose port is in the way.
	c.awaitPlaced(e.daemonOn("agent", port))
	e.awaitNote(c.expectEvicted("port", 1)[0].pod, "in the way there by more than its amounts")

	e.olderFirst(c, order)
	c.expectNoMore(calm, 0, "small", "aside", "stays")
	e.expectBooks()
}

// olderFirst checks that the older one of two pods of one priority gets the room
// that is there first, though it was made for the younger one.
func (e *env) olderFirst(c *chronicle, node string) {
	e.Helper()
	older := e.daemonOn("agent", node)
	slow := c.expectEvicted("slow", 1)[0].pod // the youngest; it stays for as long as this test likes
	second := time.Now().Unix()
	eventually(e, patience, "the next second", func() (bool, string) { return time.Now().Unix() > second, "" })
	e.createDaemonSet("later", onNode(node), requests("cpu", "2"))
	later := e.daemonOn("later", node)
	c.expectEvicted("quick", 1)
	c.awaitPlaced(older)
	if got := e.get(later).Spec.NodeName; got != "" {
		e.Fatalf("the younger pod is on node %s while nobody has left for it", got)
	}
	now := int64(0)
	e.ok(suite.client.CoreV1().Pods(e.ns).Delete(e.Context(), slow.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	c.awaitPlaced(later)
}

// filler makes a pod that fills a node, without creating it.
func (e *env) filler(of, name, node string, options ...podOption) *corev1.Pod {
	return e.pod(name, of, append(options, inQueue("root.fills"), onNode(node))...)
}

// fillInTurn creates pods and waits until they run; those of each turn are
// younger than those of the one before.
func (e *env) fillInTurn(turns [][]*corev1.Pod) {
	e.Helper()
	for _, turn := range turns {
		e.createLater(turn[0])
		for _, p := range turn[1:] {
			e.createPod(p)
		}
		for _, p := range turn {
			e.awaitRunning(p)
		}
	}
}

// daemonOn waits for the pod of a DaemonSet that is made for a node, and returns it.
func (e *env) daemonOn(set, node string) (found *corev1.Pod) {
	e.Helper()
	eventually(e, patience, fmt.Sprintf("DaemonSet %s has a pod for node %s", set, node), func() (bool, string) {
		running, waiting := e.podsOf(set)
		for _, p := range append(running, waiting...) {
			if requiredNode(p) == node {
				found = p
			}
		}
		return found != nil, fmt.Sprintf("%d run, %d wait", len(running), len(waiting))
	})
	return found
}

// requiredNode is the node that the controller has made a pod for; empty for none.
func requiredNode(p *corev1.Pod) string {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
