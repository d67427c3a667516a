package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// guard makes a PodDisruptionBudget for a group of pods, and waits until the disruption
// controller has counted them and allows so many disruptions.
func (e *env) guard(of string, minAvailable, allowed int32, options ...func(*policyv1.PodDisruptionBudget)) {
	e.Helper()
	least := intstr.FromInt32(minAvailable)
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: of},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: e.selector(of)},
	}
	for _, o := range options {
		o(b)
	}
	budgets := suite.client.PolicyV1().PodDisruptionBudgets(e.ns)
	expect.Get(budgets.Create(e.Context(), b, metav1.CreateOptions{}))(e)
	eventually(e, patience, "budget "+of+" is counted", func() (bool, string) {
		now := expect.Get(budgets.Get(e.Context(), of, metav1.GetOptions{}))(e)
		s := now.Status
		return s.ObservedGeneration == now.Generation && s.ExpectedPods > 0 && s.DesiredHealthy == minAvailable && s.DisruptionsAllowed == allowed, s.String()
	})
}

// TestUnhealthyPodEvictionPolicy checks that running pods that are not ready are
// preempted before the ready ones of another budget, if their own budget allows it.
func TestUnhealthyPodEvictionPolicy(t *testing.T) {
	e := setup(t, preemptionQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.fill("sick", 2, inQueue("root.borrows"), unready)
	always := policyv1.AlwaysAllow
	e.guard("sick", 1, 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always })
	// They are the youngest, so they would be the first victims.
	e.createLater(e.pod("well-0", "well", inQueue("root.borrows")))
	e.createPod(e.pod("well-1", "well", inQueue("root.borrows")))
	e.expect("well", 2, 0, "")
	e.guard("well", 2, 0)
	e.ok(e.createAtOnce("asker", 0, 2, inQueue("root.owed")))
	c.expectEvicted("sick", 2)
	e.expect("asker", 2, 0, "")
	if seen := c.evictedByNow("well"); len(seen) > 0 {
		t.Errorf("ready pods were evicted: %s", names(seen))
	}
}

// unready keeps a running pod from being ready.
func unready(p *corev1.Pod) {
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/never"}}
}
