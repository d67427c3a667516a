package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// withHostPort makes a pod use a port of its node.
func withHostPort(port int32) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
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

// TestPreemptionForOtherThanRoom checks that what is in the way need not be a quantity:
// only the pod that has the port, or must not be near, is preempted, although there is
// room. The filters that say so are upstream's.
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
