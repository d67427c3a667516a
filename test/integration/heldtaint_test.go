package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestHoldEndsOnATaint: an autoscaler is about to remove a node that a pod holds, on which a
// victim still stops. The hold ends, and the pod is told what an autoscaler counts.
func TestHoldEndsOnATaint(t *testing.T) {
	e := setup(t, graceQueues, preemption("retryInterval", "1h"))
	node := e.useNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
	e.fill("victim", 1, inQueue("root.other"), requests("cpu", "3"), staysFor(time.Minute))
	asker := e.create("asker", 1, inQueue("root.owed"), requests("cpu", "2"))[0]
	e.awaitHeld(asker, corev1.ConditionTrue, reasons.MakingRoom)
	e.awaitPod(asker, "is nominated to "+node, func(p *corev1.Pod) bool { return p.Status.NominatedNodeName == node })
	e.setNode(node, `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}}`)
	e.awaitHeld(asker, corev1.ConditionFalse, reasons.HoldNodeUnschedulable)
	e.awaitPod(asker, "is Unschedulable and not nominated", func(p *corev1.Pod) bool {
		c := conditionOf(p, corev1.PodScheduled)
		return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && p.Status.NominatedNodeName == ""
	})
}
