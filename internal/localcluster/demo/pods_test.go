package demo

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

func TestScale(t *testing.T) {
	three := int32(3)
	client := fake.NewClientset(
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &three}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "silent"}})
	for _, c := range []struct {
		name           string
		replicas, want int32
	}{{"d", 9, 3}, {"d", 0, 9}, {"silent", 2, 1}} {
		before, err := Scale(t.Context(), client, "ns", c.name, c.replicas)
		if err != nil || before != c.want {
			t.Errorf("%s: %d before, want %d, %v", c.name, before, c.want, err)
		}
		d, err := client.AppsV1().Deployments("ns").Get(t.Context(), c.name, metav1.GetOptions{})
		if err != nil || *d.Spec.Replicas != c.replicas {
			t.Errorf("%s has %v replicas, want %d, %v", c.name, d.Spec.Replicas, c.replicas, err)
		}
	}
	if _, err := Scale(t.Context(), client, "ns", "none", 1); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "ns/none") {
		t.Errorf("got %v, want an error that names the missing Deployment", err)
	}
}
