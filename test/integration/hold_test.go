package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestHeldNode checks that a node is kept for its asker while the last of its
// victims is leaving.
func TestHeldNode(t *testing.T) { heldNode(t, func(*env) {}) }

// TestHeldNodeAfterRestart checks the same when the scheduler is killed meanwhile.
func TestHeldNodeAfterRestart(t *testing.T) {
	heldNode(t, func(e *env) {
		e.kill()
		e.start()
	})
}

// heldNode frees two of four cores at once and the others later. No other pod of any
// profile may use the two meanwhile, not even one with a priority above those for which
// upstream respects nominated pods. When the asker is gone, every pod may.
func heldNode(t *testing.T, meanwhile func(*env)) {
	const leaves = 4 * time.Second
	e := setup(t, preemptionQueues, twoProfiles)
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	e.priorityClass("high", 1000, neverPreempts)
	c := e.keepChronicle()
	quick := e.create("quick", 1, inQueue("root.borrows"), requests("cpu", "2"))[0]
	slow := e.create("slow", 1, inQueue("root.borrows"), requests("cpu", "2"), stopsAfter(leaves))[0]
	e.awaitRunning(quick)
	e.awaitRunning(slow)
	asker := e.createPod(e.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "4")))
	high := ofPriority(e.id + "-high")
	plain := e.create("plain", 2, ofProfile(corev1.DefaultSchedulerName), high)
	third := e.create("third", 2, inQueue("root.other"), high)
	c.expectEvicted("quick", 1)
	c.expectEvicted("slow", 1)
	e.awaitGone(quick)
	meanwhile(e)
	// New pods are tried now, even if the old ones are not tried again.
	plain = append(plain, e.create("plain-late", 1, ofProfile(corev1.DefaultSchedulerName), high)...)
	third = append(third, e.create("third-late", 1, inQueue("root.other"), high)...)
	e.awaitTold(plain[2], "held")
	e.awaitTold(third[2], "held")
	placed := c.awaitPlaced(asker)
	_, bound := c.boundAt(asker.UID)
	gone := c.first(slow.UID, func(s sight) bool { return s.gone || s.pod.Status.Phase == corev1.PodFailed })
	began := c.first(slow.UID, func(s sight) bool { return s.pod.DeletionTimestamp != nil })
	if gone == nil || bound.Before(gone.at) {
		t.Fatalf("the asker was bound at %v, the last victim ended: %+v", bound, gone)
	}
	t.Logf("the last victim left for %v, the asker was bound %v later", gone.at.Sub(began.at), bound.Sub(gone.at))
	for _, p := range append(plain, third...) {
		if node, at := c.boundAt(p.UID); !at.IsZero() {
			t.Errorf("pod %s was bound to %s %v after the asker", p.Name, node, at.Sub(bound))
		}
	}
	e.delete(placed)
	eventually(t, patience, "four of the others run in its place", func() (bool, string) {
		running := 0
		for _, p := range append(plain, third...) {
			if _, at := c.boundAt(p.UID); !at.IsZero() {
				running++
			}
		}
		return running == 4, fmt.Sprintf("%d run", running)
	})
}

// TestHoldTimesOut checks a node that was cleared for an asker, which a pod that cannot
// be preempted keeps off it. The node stays held for the time-out, counted from the end
// of the last victim, and is then free for all pods; the reason is reported on the asker,
// and no further pod is preempted for it, although its pause is short.
func TestHoldTimesOut(t *testing.T) {
	// If the time-out were counted from the claim, it would be over a second after the
	// victims are gone.
	const stops, timeout, early, late = 9 * time.Second, 10 * time.Second, 4 * time.Second, 8 * time.Second
	e := setup(t, preemptionQueues, twoProfiles, reservation("reservationTimeout", timeout.String()), preemption("retryInterval", "1s"))
	e.priorityClass("high", 1000, neverPreempts) // above the priorities for which upstream respects nominated pods
	node := e.useNodes(1, localcluster.NodeSpec{CPU: "5"})[0]
	c := e.keepChronicle()
	guest := e.createPod(e.pod("guest", "guest", ofProfile(corev1.DefaultSchedulerName))) // of no queue: it does not preempt
	e.awaitRunning(guest)
	e.fill("victim", 4, inQueue("root.borrows"), stopsAfter(stops))
	asker := e.createPod(e.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2"), apartFrom("unwanted")))
	c.expectEvicted("victim", 2)
	e.patch(guest, fmt.Sprintf(`{"metadata":{"labels":{%q:"unwanted"}}}`, group))
	high := ofPriority(e.id + "-high")
	plain := e.create("plain", 1, ofProfile(corev1.DefaultSchedulerName), high)[0]
	third := e.create("third", 1, inQueue("root.other"), high)[0]
	e.awaitTold(plain, "held")

	ended := e.awaitPod(asker, "holds the node no more", func(p *corev1.Pod) bool { return conditionIs(p, held, corev1.ConditionFalse) })
	if why := conditionOf(ended, held); why.Reason != string(reasons.HoldTimedOut) || !strings.Contains(why.Message, node) {
		t.Errorf("condition %s is %s: %s", held, why.Reason, why.Message)
	}
	e.awaitNote(asker, node, timeout.String())
	e.awaitExplained(asker, reasons.HoldTimedOut, asHoldEnd)
	var clear time.Time
	for _, v := range c.evicted("victim") {
		if gone := c.first(v.pod.UID, func(s sight) bool { return s.gone }); gone.at.After(clear) {
			clear = gone.at
		}
	}
	over := c.first(asker.UID, func(s sight) bool { return conditionIs(s.pod, held, corev1.ConditionFalse) }).at
	if took := over.Sub(clear); took < timeout-early || took > timeout+late {
		t.Errorf("the hold ended %v after the last victim, want %v", took, timeout)
	}
	for _, p := range []*corev1.Pod{plain, third} {
		e.awaitRunning(p)
		if _, at := c.boundAt(p.UID); at.Before(clear.Add(timeout - early)) {
			t.Errorf("%s was bound %v after the node was clear, while it was held", p.Name, at.Sub(clear))
		}
	}
	c.expectNoMore(2*calm, 2, "victim")
	if node := e.get(asker).Spec.NodeName; node != "" {
		t.Errorf("the asker runs on %s, where it may not", node)
	}
	e.expectBooks()
}

// apartFrom keeps a pod off nodes with pods of a group.
func apartFrom(of string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{group: of}},
				TopologyKey:   corev1.LabelHostname,
			}},
		}}
	}
}
