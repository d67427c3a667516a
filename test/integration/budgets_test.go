package integration

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// guard makes a PodDisruptionBudget for a group of pods, and waits until the disruption
// controller has counted them and allows so many disruptions.
func (e *env) guard(of string, minAvailable, allowed int32) {
	e.Helper()
	least := intstr.FromInt32(minAvailable)
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: of},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: e.selector(of)},
	}
	budgets := suite.client.PolicyV1().PodDisruptionBudgets(e.ns)
	expect.Get(budgets.Create(e.Context(), b, metav1.CreateOptions{}))(e)
	eventually(e, patience, "budget "+of+" is counted", func() (bool, string) {
		now := expect.Get(budgets.Get(e.Context(), of, metav1.GetOptions{}))(e)
		s := now.Status
		return s.ObservedGeneration == now.Generation && s.ExpectedPods > 0 && s.DesiredHealthy == minAvailable && s.DisruptionsAllowed == allowed, s.String()
	})
}
