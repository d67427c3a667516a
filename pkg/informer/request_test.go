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
	"k8s.io/utils/ptr"

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

func requesting(name, text string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list(text)}}
}

func sidecar(name, text string) corev1.Container {
	c := requesting(name, text)
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

func podOf(containers ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	for i, text := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, requesting(fmt.Sprintf("c%d", i), text))
	}
	return pod
}

func with(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(pod)
	return pod
}

func initContainers(containers ...corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.InitContainers = containers }
}

func podLevel(requests string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: list(requests)} }
}

// resized is a status of container c0 during an in-place resize.
func resized(actuated, allocated, pending string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "c0", AllocatedResources: list(allocated),
			Resources: &corev1.ResourceRequirements{Requests: list(actuated)},
		}}
		if pending != "" {
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: pending,
			}}
		}
	}
}

func podResized(actuated, allocated string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		podLevel("cpu=1 memory=100")(p)
		p.Status.Resources = &corev1.ResourceRequirements{Requests: list(actuated)}
		p.Status.AllocatedResources = list(allocated)
	}
}

func TestRequests(t *testing.T) {
	const huge = math.MaxInt64
	levels := RequestOptions{PodLevelResources: true}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		o    RequestOptions
		want string
	}{
		{"best effort", podOf(""), RequestOptions{}, "pods=1"},
		{"no containers at all", &corev1.Pod{}, RequestOptions{}, "pods=1"},
		{"limits do not count", with(podOf(""), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = list("cpu=4 memory=1Gi")
		}), RequestOptions{}, "pods=1"},
		{"cpu in milli, memory in bytes", podOf("cpu=1500m memory=1Ki"), RequestOptions{}, "memory=1024 pods=1 vcore=1500"},
		{"containers add up", podOf("cpu=1 memory=10", "cpu=250m memory=5"), RequestOptions{}, "memory=15 pods=1 vcore=1250"},
		{"parts are rounded up", podOf("cpu=1u memory=1500m"), RequestOptions{}, "memory=2 pods=1 vcore=1"},
		{"zero is nothing", podOf("cpu=0 memory=7"), RequestOptions{}, "memory=7 pods=1"},
		{"extended, ephemeral, huge pages", podOf("nvidia.com/gpu=2 ephemeral-storage=1Gi hugepages-2Mi=4Mi"), RequestOptions{},
			"ephemeral-storage=1073741824 hugepages-2Mi=4194304 nvidia.com/gpu=2 pods=1"},
		{"a small init container hides", with(podOf("cpu=2"), initContainers(requesting("i", "cpu=1"))),
			RequestOptions{}, "pods=1 vcore=2000"},
		{"a large init container counts, per type", with(podOf("cpu=2 memory=9"), initContainers(requesting("i", "cpu=3 memory=1"),
			requesting("j", "cpu=1 memory=20"))), RequestOptions{}, "memory=20 pods=1 vcore=3000"},
		{"sidecars add up with containers", with(podOf("cpu=1"), initContainers(sidecar("s", "cpu=1"), sidecar("t", "cpu=500m"))),
			RequestOptions{}, "pods=1 vcore=2500"},
		{"an init container runs beside the sidecars before it", with(podOf("cpu=1"), initContainers(
			sidecar("s", "cpu=1"), requesting("i", "cpu=4"), sidecar("late", "cpu=1"))), RequestOptions{}, "pods=1 vcore=5000"},
		{"overhead", with(podOf("cpu=1"), func(p *corev1.Pod) { p.Spec.Overhead = list("cpu=100m memory=30") }),
			RequestOptions{}, "memory=30 pods=1 vcore=1100"},
		{"overhead of a best-effort pod", with(podOf(""), func(p *corev1.Pod) { p.Spec.Overhead = list("memory=30") }),
			RequestOptions{}, "memory=30 pods=1"},

		{"pod level, gate off", with(podOf("cpu=1 memory=10"), podLevel("cpu=4")), RequestOptions{}, "memory=10 pods=1 vcore=1000"},
		{"pod level, gate on", with(podOf("cpu=1 memory=10"), podLevel("cpu=4")), levels, "memory=10 pods=1 vcore=4000"},
		{"pod level, less than the init containers", with(with(podOf("cpu=1"), podLevel("cpu=2")),
			initContainers(requesting("i", "cpu=3"))), levels, "pods=1 vcore=2000"},
		{"pod level and overhead", with(with(podOf("cpu=1"), podLevel("cpu=4")),
			func(p *corev1.Pod) { p.Spec.Overhead = list("cpu=1") }), levels, "pods=1 vcore=5000"},
		{"pod level leaves other types alone", with(podOf("nvidia.com/gpu=1"), podLevel("cpu=1 hugepages-2Mi=2Mi")), levels,
			"hugepages-2Mi=2097152 nvidia.com/gpu=1 pods=1 vcore=1000"},

		{"resize up: wanted counts", with(podOf("cpu=3"), resized("cpu=1", "cpu=1", "")), RequestOptions{}, "pods=1 vcore=3000"},
		{"resize down: used counts", with(podOf("cpu=1"), resized("cpu=3", "cpu=2", "")), RequestOptions{}, "pods=1 vcore=3000"},
		{"resize down: allocated counts", with(podOf("cpu=1"), resized("cpu=1", "cpu=2", "")), RequestOptions{}, "pods=1 vcore=2000"},
		{"deferred resize: wanted counts", with(podOf("cpu=3"), resized("cpu=1", "cpu=1", corev1.PodReasonDeferred)),
			RequestOptions{}, "pods=1 vcore=3000"},
		{"infeasible resize: wanted does not count", with(podOf("cpu=300"), resized("cpu=1", "cpu=2", corev1.PodReasonInfeasible)),
			RequestOptions{}, "pods=1 vcore=2000"},
		{"a status of another container does not count", with(podOf("cpu=1"), func(p *corev1.Pod) {
			resized("cpu=3", "cpu=3", "")(p)
			p.Status.ContainerStatuses[0].Name = "gone"
		}), RequestOptions{}, "pods=1 vcore=1000"},
		{"pod-level resize, gate off", with(podOf("cpu=1"), podResized("cpu=3 memory=100", "cpu=2 memory=100")), levels,
			"memory=100 pods=1 vcore=1000"},
		{"pod-level resize, gate on", with(podOf("cpu=1"), podResized("cpu=3 memory=100", "cpu=2 memory=300")),
			RequestOptions{PodLevelResources: true, PodLevelResize: true}, "memory=300 pods=1 vcore=3000"},

		{"more milli-CPU than fit", podOf("cpu=10P"), RequestOptions{}, fmt.Sprintf("pods=1 vcore=%d", huge)},
		{"the most milli-CPU that fit", podOf("cpu=9223372036854775"), RequestOptions{}, "pods=1 vcore=9223372036854775000"},
		{"one core more than fit", podOf("cpu=9223372036854776"), RequestOptions{}, fmt.Sprintf("pods=1 vcore=%d", huge)},
		{"a fraction more than fits", podOf("cpu=9223372036854775", "cpu=1m"), RequestOptions{}, fmt.Sprintf("pods=1 vcore=%d", huge)},
		{"the largest quantity", podOf("memory=9223372036854775807"), RequestOptions{}, fmt.Sprintf("memory=%d pods=1", huge)},
		{"one more than the largest", podOf("memory=9223372036854775807", "memory=1"), RequestOptions{}, fmt.Sprintf("memory=%d pods=1", huge)},
		{"two that wrap to nothing", podOf("memory=9223372036854775807", "memory=9223372036854775807", "memory=2"),
			RequestOptions{}, fmt.Sprintf("memory=%d pods=1", huge)},
		{"decimal exponents", podOf("memory=9E", "memory=9E", "nvidia.com/gpu=9E"), RequestOptions{},
			fmt.Sprintf("memory=%d nvidia.com/gpu=9000000000000000000 pods=1", huge)},
		{"huge overhead", with(podOf("memory=9E"), func(p *corev1.Pod) { p.Spec.Overhead = list("memory=8Ei") }),
			RequestOptions{}, fmt.Sprintf("memory=%d pods=1", huge)},

		{"below zero is zero", podOf("cpu=-1 memory=-5 nvidia.com/gpu=-2"), RequestOptions{}, "pods=1"},
		{"far below zero is zero", podOf("cpu=-9E memory=-9E", "cpu=-9E memory=-9E"), RequestOptions{}, "pods=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.pod.DeepCopy()
			expect.Same(t, "requests", c.want, Requests(c.pod, c.o).String())
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
