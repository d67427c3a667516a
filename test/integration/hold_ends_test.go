package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// half is a hold with half of its room free: an asker of two cores, one victim that is
// gone and one that terminates until the test ends it.
type half struct {
	*env
	c           *history
	node        string
	asker, slow *corev1.Pod
}

// makeHalf makes a node of four cores with such a hold. The other two pods of the node
// would be the next victims.
func makeHalf(t *testing.T) *half {
	t.Helper()
	h := &half{env: setup(t, preemptionQueues, preemption("retryInterval", "1s"))}
	h.node = h.useNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
	h.c = h.keepHistory()
	h.fill("stays", 2, inQueue("root.borrows"))
	// The youngest, and applications of their own: the first victims.
	h.slow = h.createLater(h.pod("slow", "slow", inQueue("root.borrows"), stopsAfter(5*time.Minute)))
	quick := h.createPod(h.pod("quick", "quick", inQueue("root.borrows")))
	h.awaitRunning(h.slow)
	h.awaitRunning(quick)
	h.asker = h.createPod(h.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2")))
	h.c.expectEvicted("slow", 1)
	h.c.expectEvicted("quick", 1)
	h.awaitGone(quick)
	return h
}

// awaitEnd waits until a hold of the asker ended for a reason, and until events and
// conditions say so.
func (h *half) awaitEnd(why reasons.Code, says string) {
	h.Helper()
	var seen []string
	eventually(h, patience, "the hold ends: "+string(why), func() (bool, string) {
		seen = nil
		for _, c := range h.c.statuses(h.asker.UID, held) {
			if c.Status == corev1.ConditionFalse && c.Reason == string(why) && strings.Contains(c.Message, h.node) {
				return true, ""
			}
			seen = append(seen, fmt.Sprintf("%s %s", c.Status, c.Reason))
		}
		return false, strings.Join(seen, ", ")
	})
	h.awaitNote(h.asker, says, h.node)
	eventually(h, patience, "the hold is listed as ended by "+string(why), func() (bool, string) {
		var holds documents.Holds
		h.own("holds?pod="+h.asker.Name, &holds)
		return slices.ContainsFunc(holds.Ended, func(o documents.EndedHold) bool { return o.Reason == why && o.Node == h.node }), fmt.Sprintf("%+v", holds.Ended)
	})
}

// TestHoldOfANodeThatRefuses checks that a hold ends at once, even with a terminating
// victim, when a label or a taint of its node changes so that the filters refuse it
// whichever pods are preempted. The asker is Unschedulable and not nominated, so that an
// autoscaler sees it. No further pod is preempted, and the asker gets the room when the
// node is as before.
func TestHoldOfANodeThatRefuses(t *testing.T) {
	for _, c := range []struct {
		name           string
		refuse, permit func(h *half) string // patches of the node
	}{
		{
			"label",
			func(*half) string { return fmt.Sprintf(`{"metadata":{"labels":{%q:"other"}}}`, pool) },
			func(h *half) string { return fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, pool, h.nodePool) },
		},
		{
			"Karpenter's taint",
			func(*half) string {
				return `{"spec":{"taints":[{"key":"karpenter.sh/disrupted","effect":"NoSchedule"}]}}`
			},
			func(*half) string { return `{"spec":{"taints":null}}` },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := makeHalf(t)
			h.setNode(h.node, c.refuse(h))
			h.awaitEnd(reasons.HoldNodeUnschedulable, "cannot take the pod any more")
			h.awaitPod(h.asker, "is not nominated, and Unschedulable", func(p *corev1.Pod) bool {
				c := conditionOf(p, corev1.PodScheduled)
				return p.Status.NominatedNodeName == "" && c != nil && c.Reason == corev1.PodReasonUnschedulable
			})
			h.endAtOnce(h.slow)
			h.awaitGone(h.slow)
			h.c.expectNoMore(calm, 2, "stays", "slow", "quick")
			if node := h.get(h.asker).Spec.NodeName; node != "" {
				t.Errorf("the asker runs on %s, where it may not", node)
			}
			h.setNode(h.node, c.permit(h))
			h.awaitRunning(h.asker)
			h.c.expectNoMore(calm, 2, "stays", "slow", "quick")
			h.expectBooks()
		})
	}
}

// TestAVictimThatStaysTrapsNoAsker: a borrower has a grace period of a year and uses it.
// The hold ends after reservationTimeout: the asker runs on a node that has become empty
// meanwhile, other pods use what is free on the node that was held, and no further pod is
// preempted.
func TestAVictimThatStaysTrapsNoAsker(t *testing.T) {
	h := &half{env: setup(t, preemptionQueues, preemption("retryInterval", "1s"), reservation("reservationTimeout", "6s"))}
	h.node = h.useNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
	h.c = h.keepHistory()
	h.fill("stays", 1, inQueue("root.borrows"), requests("cpu", "3"), staysFor(year))
	other := h.addNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
	h.fill("full", 1, inQueue("root.owed"), requests("cpu", "4"))
	full, _ := h.podsOf("full")
	h.asker = h.createPod(h.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2")))
	h.slow = h.c.expectEvicted("stays", 1)[0].pod
	small := h.create("small", 1, inQueue("root.other"), requests("cpu", "500m"), onNode(h.node))[0]
	h.awaitTold(small, "Insufficient cpu") // the room is kept for the asker
	h.endAtOnce(full[0])
	h.awaitEnd(reasons.HoldTimedOut, "after the request to stop")
	if node := h.awaitRunning(h.asker).Spec.NodeName; node != other {
		t.Errorf("the asker runs on %s, want %s, which is empty", node, other)
	}
	h.awaitRunning(small)
	if now := h.get(h.slow); now.UID != h.slow.UID || now.DeletionTimestamp == nil {
		t.Error("the victim does not terminate any more, so it was not shown that its asker goes elsewhere")
	}
	h.c.expectNoMore(calm, 1, "stays")
	h.expectBooks()
}

// withFinalizer gives a pod a finalizer, which keeps its object after its end until the
// end of the test.
func (e *env) withFinalizer(p *corev1.Pod) {
	p.Finalizers = append(p.Finalizers, "integration.paddock.io/stay")
	e.Cleanup(func() {
		_, err := suite.client.CoreV1().Pods(p.Namespace).Patch(context.Background(), p.Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		e.ok(err)
	})
}

// TestFinalizers: a finalizer keeps the object of a pod, and nothing else. The room of a
// victim is free once its containers have ended, and no further victim is chosen. The hold
// of an asker ends when the asker is deleted, and its room goes to others.
func TestFinalizers(t *testing.T) {
	e := setup(t, forgedQueues, twoProfiles, preemption("retryInterval", "1s"))
	c := e.keepHistory()
	e.run("on victims", func(e *env) {
		part := e.apart("victims", 1, localcluster.NodeSpec{CPU: "4"})
		part.create("victim", 4, inQueue("root.evil"), e.withFinalizer)
		e.expect("victim", 4, 0, "")
		part.awaitRunning(part.createPod(part.pod("asker", "asker", inQueue("root.team"), requests("cpu", "2"))))
		c.expectNoMore(calm, 2, "victim")
		for _, v := range c.evicted("victim") {
			if now := e.get(v.pod); now.UID != v.pod.UID || now.Status.Phase != corev1.PodFailed {
				e.Errorf("pod %s is %s: its finalizer did not keep it", v.pod.Name, now.Status.Phase)
			}
		}
		e.expectBooks()
	})
	e.run("on an asker", func(e *env) {
		part := e.apart("asker", 1, localcluster.NodeSpec{CPU: "4"})
		part.create("slow", 1, inQueue("root.evil"), requests("cpu", "4"), stopsAfter(2*time.Second))
		e.expect("slow", 1, 0, "")
		asker := part.createPod(part.pod("leaves", "leaves", inQueue("root.team"), requests("cpu", "4"), e.withFinalizer))
		e.awaitPod(asker, "holds its node", func(p *corev1.Pod) bool { return conditionIs(p, held, corev1.ConditionTrue) })
		c.expectEvicted("slow", 1)
		e.delete(asker)
		var holds documents.Holds
		eventually(e, patience, "no node is held", func() (bool, string) {
			e.own("holds", &holds)
			return len(holds.Holds) == 0, ""
		})
		part.awaitRunning(part.createPod(part.pod("other", "other", ofProfile(corev1.DefaultSchedulerName), requests("cpu", "4"))))
		if now := e.get(asker); now.DeletionTimestamp == nil || now.Spec.NodeName != "" {
			e.Errorf("the asker was deleted at %v and is on node %q", now.DeletionTimestamp, now.Spec.NodeName)
		}
	})
}
