package informer

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// list parses a resource list such as "cpu=500m memory=1Gi".
func list(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, part := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(part, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return out
}

func podOf(containers ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	for i, text := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("c%d", i), Resources: corev1.ResourceRequirements{Requests: list(text)},
		})
	}
	return pod
}

func with(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(pod)
	return pod
}

// TestRequests: amounts are rounded, limited and never below 0. What of a pod counts is compared
// with the scheduler by TestQueuesAreChargedWhatTheSchedulerCounts of pkg/app.
func TestRequests(t *testing.T) {
	const huge = math.MaxInt64
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"best effort", podOf(""), "pods=1"},
		{"no containers at all", &corev1.Pod{}, "pods=1"},
		{"limits do not count", with(podOf(""), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = list("cpu=4 memory=1Gi")
		}), "pods=1"},
		{"cpu in milli, memory in bytes", podOf("cpu=1500m memory=1Ki"), "memory=1024 pods=1 vcore=1500"},
		{"containers add up", podOf("cpu=1 memory=10", "cpu=250m memory=5"), "memory=15 pods=1 vcore=1250"},
		{"parts are rounded up", podOf("cpu=1u memory=1500m"), "memory=2 pods=1 vcore=1"},
		{"zero is nothing", podOf("cpu=0 memory=7"), "memory=7 pods=1"},
		{"extended, ephemeral, huge pages", podOf("nvidia.com/gpu=2 ephemeral-storage=1Gi hugepages-2Mi=4Mi"),
			"ephemeral-storage=1073741824 hugepages-2Mi=4194304 nvidia.com/gpu=2 pods=1"},

		{"more milli-CPU than fit", podOf("cpu=10P"), fmt.Sprintf("pods=1 vcore=%d", huge)},
		{"the most milli-CPU that fit", podOf("cpu=9223372036854775"), "pods=1 vcore=9223372036854775000"},
		{"one core more than fit", podOf("cpu=9223372036854776"), fmt.Sprintf("pods=1 vcore=%d", huge)},
		{"a fraction more than fits", podOf("cpu=9223372036854775", "cpu=1m"),
			fmt.Sprintf("pods=1 vcore=%d", huge)},
		{"the largest quantity", podOf("memory=9223372036854775807"), fmt.Sprintf("memory=%d pods=1", huge)},
		{"one more than the largest", podOf("memory=9223372036854775807", "memory=1"),
			fmt.Sprintf("memory=%d pods=1", huge)},
		{"two that wrap to nothing", podOf("memory=9223372036854775807", "memory=9223372036854775807", "memory=2"),
			fmt.Sprintf("memory=%d pods=1", huge)},
		{"decimal exponents", podOf("memory=9E", "memory=9E", "nvidia.com/gpu=9E"),
			fmt.Sprintf("memory=%d nvidia.com/gpu=9000000000000000000 pods=1", huge)},
		{"huge overhead", with(podOf("memory=9E"), func(p *corev1.Pod) { p.Spec.Overhead = list("memory=8Ei") }),
			fmt.Sprintf("memory=%d pods=1", huge)},

		{"below zero is zero", podOf("cpu=-1 memory=-5 nvidia.com/gpu=-2"), "pods=1"},
		{"far below zero is zero", podOf("cpu=-9E memory=-9E", "cpu=-9E memory=-9E"), "pods=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.pod.DeepCopy()
			expect.Same(t, "requests", c.want, Requests(c.pod, RequestOptions{}).String())
			if !equality.Semantic.DeepEqual(before, c.pod) {
				t.Error("the pod was changed")
			}
		})
	}
}

func TestAllocatable(t *testing.T) {
	node := &corev1.Node{}
	node.Status.Capacity = list("cpu=8 memory=100 pods=250")
	expect.Same(t, "a node without allocatable holds", "0", Allocatable(node).String())
	node.Status.Allocatable = list("cpu=7500m memory=90 pods=110 nvidia.com/gpu=0 ephemeral-storage=8Ei")
	const want = "ephemeral-storage=70368744177664 memory=90 pods=110 vcore=7500"
	expect.Same(t, "its allocatable, not its capacity", want, Allocatable(node).String())
}

// TestNodesWithoutBoundsLeaveNoTrace: nodes come and go that offer as much as an amount can
// be. The capacity is right again once they are gone.
func TestNodesWithoutBoundsLeaveNoTrace(t *testing.T) {
	spec := expect.Get(config.Parse([]byte("partitions: [{name: default, queues: [{name: root}]}]")))(t)
	s, now := store.New(spec, store.Options{}), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, memory := range map[string]string{"n1": "100", "n2": "9223372036854775807", "n3": "9223372036854775807"} {
		node := &corev1.Node{}
		node.Status.Allocatable = list("memory=" + memory)
		s.UpsertNode(name, Allocatable(node), now)
	}
	s.Start(now)
	s.DeleteNode("n2", now)
	s.DeleteNode("n3", now)
	expect.Holds(t, s.Check())
	expect.Same(t, "all nodes offer", "memory=100", s.Snapshot().Capacity().String())
}
