package demo

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// told is a pod with conditions, given as type, status, message.
func told(namespace, name, node string, phase corev1.PodPhase, conditions ...[3]string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}
	for _, c := range conditions {
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodConditionType(c[0]), Status: corev1.ConditionStatus(c[1]), Message: c[2]})
	}
	return p
}

func sampleNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{OwnerLabel: OwnerValue}}}
}

func TestPodTable(t *testing.T) {
	const queues, scheduler = reasons.AdmittedCondition, string(corev1.PodScheduled)
	client := fake.NewClientset(
		sampleNamespace("two"), sampleNamespace("one"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}},
		told("two", "runs", "node-1", corev1.PodRunning, [3]string{queues, "False", "long ago"}),
		told("two", "held", "", corev1.PodPending, [3]string{scheduler, "False", "gated"}, [3]string{queues, "False", "queue root.a\nis full"}),
		told("one", "tried", "", corev1.PodPending, [3]string{queues, "True", "welcome"}, [3]string{scheduler, "False", "0/3 nodes"}),
		told("one", "new", "", corev1.PodPending),
		told("theirs", "foreign", "", corev1.PodPending),
	)
	pods := expect.Get(SamplePods(t.Context(), client))(t)
	var out strings.Builder
	expect.OK(t, PrintPods(&out, pods))
	want := `NAMESPACE   NAME    PHASE     NODE     WHY IT WAITS
one         new     Pending   -        -
one         tried   Pending   -        0/3 nodes
two         held    Pending   -        queue root.a is full
two         runs    Running   node-1   -
`
	expect.Same(t, "table", want, out.String())
}
