package nodeagent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestNodeSpec(t *testing.T) {
	node := expect.Get(NodeSpec{NamePrefix: "gpu", CPU: "16", Extended: map[string]string{"example.com/gpu": "4"}, Labels: map[string]string{"pool": "a"}}.Node(5))(t)
	expect.Same(t, "name", "gpu-0005", node.Name)
	for name, want := range map[corev1.ResourceName]string{"cpu": "16", "memory": "32Gi", "example.com/gpu": "4"} {
		expect.Same(t, name.String(), want, node.Status.Allocatable.Name(name, "").String())
	}
	for key, want := range map[string]string{
		corev1.LabelHostname: "gpu-0005", corev1.LabelTopologyZone: "z2", "pool": "a", LabelNode: LabelNodeValue,
	} {
		expect.Same(t, "label "+key, want, node.Labels[key])
	}
}

func TestNodeSpecErrorsNameTheField(t *testing.T) {
	for want, spec := range map[string]NodeSpec{
		"memory":          {Memory: "lots"},
		"example.com/gpu": {Extended: map[string]string{"example.com/gpu": "x"}},
	} {
		expect.Refused(spec.Node(0))(t, want)
	}
}

func TestAddressesBeginAgainAfterTheLast(t *testing.T) {
	a := &Agent{}
	a.addresses.Store(1<<23 - 2)
	expect.Same(t, "the last address and the next", "10.255.255.255 10.128.0.0", a.address()+" "+a.address())
}

// t0 is the start of the clock of a synctest bubble.
var t0 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// list makes a resource list from name, quantity pairs.
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// testPod is a pod bound to a node with one container that requests the pairs.
func testPod(name, node string, pairs ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID("uid-" + name), Annotations: map[string]string{},
			CreationTimestamp: metav1.NewTime(t0),
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: list(pairs...)},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// running marks a pod as one that its node has admitted.
func running(pod *corev1.Pod, since time.Time) *corev1.Pod {
	pod.Status = runningStatus(pod, "10.128.0.9", since)
	return pod
}

// deleting marks a pod as being deleted since a time, with a grace period in seconds.
func deleting(pod *corev1.Pod, since time.Time, grace int64) *corev1.Pod {
	end := metav1.NewTime(since.Add(time.Duration(grace) * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
	return pod
}

// testNode is a managed node with these allocatable resources and 110 pods.
func testNode(t *testing.T, name string, pairs ...string) *corev1.Node {
	t.Helper()
	node := expect.Get(NodeSpec{}.Node(0))(t)
	node.Name, node.UID = name, types.UID("uid-"+name)
	node.Labels[corev1.LabelHostname] = name
	node.Status.Allocatable = list(append([]string{"pods", "110"}, pairs...)...)
	node.Status.Capacity = node.Status.Allocatable
	return node
}
