package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestHoldEndsWhenItsNodeIsRefused: a node that a pod holds, on which a victim still stops, gets
// the taint of an autoscaler that is about to remove it, or loses a label that the pod requires.
// The hold ends, and the pod is told what an autoscaler counts.
func TestHoldEndsWhenItsNodeIsRefused(t *testing.T) {
	const disk = "example.com/disk"
	e := setup(t, graceQueues, preemption("retryInterval", "1h"))
	for name, change := range map[string]string{
		"taint": `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}}`,
		"label": `{"metadata":{"labels":{"` + disk + `":"slow"}}}`,
	} {
		e.run(name, func(e *env) {
			e = e.apart(name, 0, localcluster.NodeSpec{})
			node := e.addNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
			e.setNode(node, `{"metadata":{"labels":{"`+disk+`":"fast"}}}`)
			e.fill("victim-"+name, 1, inQueue("root.other"), requests("cpu", "3"), staysFor(time.Minute))
			fast := func(p *corev1.Pod) { p.Spec.NodeSelector[disk] = "fast" }
			asker := e.create("asker-"+name, 1, inQueue("root.owed"), requests("cpu", "2"), fast)[0]
			e.awaitHeld(asker, corev1.ConditionTrue, reasons.MakingRoom)
			e.awaitPod(asker, "is nominated to "+node, func(p *corev1.Pod) bool { return p.Status.NominatedNodeName == node })
			e.setNode(node, change)
			e.awaitHeld(asker, corev1.ConditionFalse, reasons.HoldNodeUnschedulable)
			e.awaitPod(asker, "is Unschedulable and not nominated", func(p *corev1.Pod) bool {
				c := conditionOf(p, corev1.PodScheduled)
				return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && p.Status.NominatedNodeName == ""
			})
		})
	}
}
