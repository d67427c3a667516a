package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// withHostPort lets a pod use a port of its node.
func withHostPort(port int32) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

// apartFrom keeps a pod off the nodes that have pods of a group.
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

// TestPreemptionForOtherThanRoom checks that what is in the way need not be a
// quantity: the pod that has the port, or must not be near, goes and nobody
// else, though there is room. The filters that say so are upstream's.
func TestPreemptionForOtherThanRoom(t *testing.T) {
	e := setup(t, preemptionQueues)
	c := e.keepChronicle()
	for _, k := range []struct {
		name          string
		victim, asker podOption
	}{
		{"port", withHostPort(18080), withHostPort(18080)},
		{"affinity", requests("cpu", "1"), apartFrom("affinity-victim")},
	} {
		part := e.apart(k.name, 1, localcluster.NodeSpec{CPU: "8"})
		part.fill(k.name+"-victim", 1, inQueue("root.borrows"), k.victim)
		part.fill(k.name+"-bystander", 2, inQueue("root.borrows"))
		asker := part.createPod(part.pod(k.name+"-asker", k.name+"-asker", inQueue("root.owed"), k.asker))
		c.expectEvicted(k.name+"-victim", 1)
		c.awaitPlaced(asker)
		if seen := c.evictedByNow(k.name + "-bystander"); len(seen) > 0 {
			t.Errorf("%s: pods that were not in the way were evicted: %s", k.name, names(seen))
		}
	}
	e.expectBooks()
}

// TestPreemptionAndBudgets checks that pods whose disruption budget is used up
// stay as long as others will do, and that the budget is no guarantee either.
func TestPreemptionAndBudgets(t *testing.T) {
	e := setup(t, preemptionQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepChronicle()
	e.fill("free", 2, inQueue("root.borrows"))
	// They are the youngest, which would be the first to go.
	e.createLater(e.pod("guarded-0", "guarded", inQueue("root.borrows")))
	e.createPod(e.pod("guarded-1", "guarded", inQueue("root.borrows")))
	e.expect("guarded", 2, 0, "")
	both := intstr.FromInt32(2)
	budgets := suite.client.PolicyV1().PodDisruptionBudgets(e.ns)
	_, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &both, Selector: e.selector("guarded")},
	}, metav1.CreateOptions{})
	e.ok(err)
	eventually(t, patience, "the budget is counted", func() (bool, string) {
		b, err := budgets.Get(t.Context(), "guard", metav1.GetOptions{})
		e.ok(err)
		return b.Status.ExpectedPods == 2 && b.Status.CurrentHealthy == 2 && b.Status.DisruptionsAllowed == 0, b.Status.String()
	})
	first := e.createPod(e.pod("first", "first", inQueue("root.owed"), requests("cpu", "2")))
	c.expectEvicted("free", 2)
	c.awaitPlaced(first)
	if seen := c.evictedByNow("guarded"); len(seen) > 0 {
		t.Errorf("others would have done, and these were evicted: %s", names(seen))
	}
	second := e.createPod(e.pod("second", "second", inQueue("root.owed")))
	c.expectEvicted("guarded", 1)
	c.awaitPlaced(second)
}
