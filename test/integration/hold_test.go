package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// TestHeldNode frees two of four cores at once and the others later. No other pod of any
// profile may use the two meanwhile, not even one with a priority above those for which
// upstream respects nominated pods. When the asker is gone, every pod may.
func TestHeldNode(t *testing.T) {
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
