package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNodesAreWantedForAsManyPodsAsMayRun: 40 pods find no node, and the max of their
// queue lets ten of them run. Autoscalers add nodes for pods with reason Unschedulable,
// so exactly ten have it. When the max changes, the number follows, also across a
// restart.
func TestNodesAreWantedForAsManyPodsAsMayRun(t *testing.T) {
	e := setup(t, oneLeaf("10"))
	for i := range 40 {
		p := e.pod(fmt.Sprintf("p-%d", i), "p", inQueue("root.a"), requests("cpu", "1"))
		p.Spec.NodeSelector = map[string]string{"example.com/pool": "grows"}
		e.createPod(p)
	}
	e.expectWanted(10)
	e.configure(oneLeaf("3"))
	e.expectWanted(3)
	e.kill()
	e.start()
	e.expectWanted(3)
	e.configure(oneLeaf("12"))
	e.expectWanted(12)
}

// expectWanted waits until so many pods have reason Unschedulable, and all others another
// reason.
func (e *env) expectWanted(want int) {
	e.Helper()
	eventually(e.T, patience, fmt.Sprintf("nodes are wanted for %d pods", want), func() (bool, string) {
		pods, err := e.listPods(context.Background())
		if err != nil {
			return false, err.Error()
		}
		reasons := map[string]int{}
		for i := range pods {
			for _, c := range pods[i].Status.Conditions {
				if c.Type == corev1.PodScheduled {
					reasons[c.Reason]++
				}
			}
		}
		return reasons[corev1.PodReasonUnschedulable] == want && reasons[corev1.PodReasonSchedulingGated] == len(pods)-want, fmt.Sprint(reasons)
	})
}
