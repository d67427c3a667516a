package informer

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

func TestTranslate(t *testing.T) {
	created := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	pod := podOf("cpu=2")
	pod.ObjectMeta = metav1.ObjectMeta{
		UID: "u1", Namespace: "ns", Name: "p", CreationTimestamp: metav1.NewTime(created),
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
	}
	want := objects.Pod{
		Identity: objects.Identity{
			UID: "u1", Namespace: "ns", Name: "p", Created: created,
			Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
		},
		Request: resources.VectorFrom(map[string]resources.Amount{"vcore": 2000, "pods": 1}),
	}
	steps := []struct {
		name   string
		change func(*corev1.Pod, *objects.Pod)
	}{
		{"pending", func(*corev1.Pod, *objects.Pod) {}},
		{"priority", func(p *corev1.Pod, w *objects.Pod) { p.Spec.Priority, w.Priority = ptr.To[int32](-7), -7 }},
		{"preempts", func(p *corev1.Pod, _ *objects.Pod) {
			p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
		}},
		{"never preempts", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.PreemptionPolicy, w.NeverPreempts = ptr.To(corev1.PreemptNever), true
		}},
		{"has no policy", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.PreemptionPolicy, w.NeverPreempts = ptr.To[corev1.PreemptionPolicy](""), false
		}},
		{"gated", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.SchedulingGates, w.Gated = []corev1.PodSchedulingGate{{Name: "g"}}, true
		}},
		{"gates open", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.SchedulingGates, w.Gated = []corev1.PodSchedulingGate{}, false
		}},
		{"told", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"},
				{Type: reasons.AdmittedCondition, Status: corev1.ConditionFalse, Reason: "OverMax"},
			}
			w.Told, w.Demand = reasons.OverMax, objects.DemandWanted
		}},
		{"beyond a quota", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions[0].Reason, p.Status.Conditions[0].Message = "SchedulingGated", "no node is asked for: OverMax"
			w.Demand = objects.DemandBeyond
		}},
		{"beyond a quota after a cycle", func(p *corev1.Pod, _ *objects.Pod) {
			p.Status.Conditions[0].Message = "0/3 nodes are available; no node is asked for: OverMax"
		}},
		{"a cycle ended with an error", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions[0].Reason, w.Demand = "SchedulerError", objects.DemandOther
		}},
		{"has a scheduling gate", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions[0].Reason, p.Spec.SchedulingGates = "SchedulingGated", []corev1.PodSchedulingGate{{Name: "g"}}
			p.Status.Conditions[0].Message = "Scheduling is blocked due to non-empty scheduling gates"
			w.Gated, w.Demand = true, objects.DemandOther
		}},
		{"gates open again, and the condition stays", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.SchedulingGates, w.Gated = nil, false
		}},
		{"taken back", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions[1].Status, w.Told = corev1.ConditionTrue, ""
		}},
		{"bound", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.NodeName, w.Node, w.Demand = "n1", "n1", objects.DemandUnsaid
		}},
		{"bound at a time", func(p *corev1.Pod, w *objects.Pod) {
			w.Scheduled = created.Add(time.Minute)
			p.Status.Conditions[0] = corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.Scheduled),
			}
		}},
		{"running is not over", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Phase, w.Health = corev1.PodRunning, objects.Unready
		}},
		{"deleting", func(p *corev1.Pod, w *objects.Pod) {
			p.DeletionTimestamp, w.Deleting, w.GoneBy = &metav1.Time{Time: created}, true, created
		}},
		{"succeeded", func(p *corev1.Pod, w *objects.Pod) { p.Status.Phase, w.Terminal = corev1.PodSucceeded, true }},
		{"lost sight of", func(p *corev1.Pod, w *objects.Pod) { p.Status.Phase, w.Terminal = corev1.PodUnknown, false }},
		{"failed", func(p *corev1.Pod, w *objects.Pod) { p.Status.Phase, w.Terminal = corev1.PodFailed, true }},
	}
	for _, s := range steps {
		s.change(pod, &want)
		expect.Same(t, s.name, want, Translate(pod, RequestOptions{}))
	}
}

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
	const huge = "9223372036854775807"
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

		{"more milli-CPU than fit", podOf("cpu=10P"), "pods=1 vcore=" + huge},
		{"the most milli-CPU that fit", podOf("cpu=9223372036854775"), "pods=1 vcore=9223372036854775000"},
		{"one core more than fit", podOf("cpu=9223372036854776"), "pods=1 vcore=" + huge},
		{"a fraction more than fits", podOf("cpu=9223372036854775", "cpu=1m"), "pods=1 vcore=" + huge},
		{"the largest quantity", podOf("memory=" + huge), "memory=" + huge + " pods=1"},
		{"one more than the largest", podOf("memory="+huge, "memory=1"), "memory=" + huge + " pods=1"},
		{"two that wrap to nothing", podOf("memory="+huge, "memory="+huge, "memory=2"), "memory=" + huge + " pods=1"},
		{"decimal exponents", podOf("memory=9E", "memory=9E", "nvidia.com/gpu=9E"),
			"memory=" + huge + " nvidia.com/gpu=9000000000000000000 pods=1"},
		{"huge overhead", with(podOf("memory=9E"), func(p *corev1.Pod) { p.Spec.Overhead = list("memory=8Ei") }),
			"memory=" + huge + " pods=1"},

		{"below zero is zero", podOf("cpu=-1 memory=-5 nvidia.com/gpu=-2"), "pods=1"},
		{"far below zero is zero", podOf("cpu=-9E memory=-9E", "cpu=-9E memory=-9E"), "pods=1"},
	} {
		before := c.pod.DeepCopy()
		expect.Same(t, c.name, c.want, Requests(c.pod, RequestOptions{}).String())
		expect.Same(t, c.name+": the pod itself", before, c.pod)
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

func classPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "red", Name: "job-0", UID: "u0",
			Labels:          map[string]string{"job": "job", "batch.kubernetes.io/job-completion-index": "0"},
			Annotations:     map[string]string{"batch.kubernetes.io/job-completion-index": "0"},
			OwnerReferences: []metav1.OwnerReference{{UID: "job", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			Hostname:     "job-0",
			NodeSelector: map[string]string{"disk": "ssd", "zone": "a", "arch": "arm64"},
			Volumes:      []corev1.Volume{{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "main", Image: "a:1", Args: []string{"0"},
				VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x7k2p"}},
				Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}},
			}},
		},
	}
}

func TestEquivalenceClass(t *testing.T) {
	const same, other, own = "the same", "another one", "its own"
	base := EquivalenceClass(classPod())
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	for _, tt := range []struct {
		name   string
		change func(p *corev1.Pod)
		want   string
	}{
		{"nothing", func(*corev1.Pod) {}, same},
		{"name, UID, creation", func(p *corev1.Pod) {
			p.Name, p.UID, p.CreationTimestamp = "job-1", "u1", metav1.Now()
		}, same},
		{"annotation", func(p *corev1.Pod) { p.Annotations["x"] = "y" }, same},
		{"status", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, same},
		{"completion index", func(p *corev1.Pod) {
			p.Labels["batch.kubernetes.io/job-completion-index"] = "1"
			p.Spec.Hostname = "job-1"
		}, same},
		{"service account volume", func(p *corev1.Pod) {
			p.Spec.Volumes[0].Name, p.Spec.Containers[0].VolumeMounts[0].Name = "kube-api-access-b", "kube-api-access-b"
		}, same},
		{"arguments and environment", func(p *corev1.Pod) {
			p.Spec.Containers[0].Args, p.Spec.Containers[0].Env = []string{"1"}, []corev1.EnvVar{{Name: "I"}}
		}, same},
		{"namespace", func(p *corev1.Pod) { p.Namespace = "blue" }, other},
		{"label", func(p *corev1.Pod) { p.Labels["job"] = "other" }, other},
		{"controller", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, other},
		{"request", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}, other},
		{"host port", func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }, other},
		{"init container", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "init"}} }, other},
		{"node selector", func(p *corev1.Pod) { p.Spec.NodeSelector["zone"] = "b" }, other},
		{"toleration", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}} }, other},
		{"affinity", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} }, other},
		{"spreading", func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
		}, other},
		{"priority", func(p *corev1.Pod) { p.Spec.Priority = new(int32) }, other},
		{"claim", func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: claim})
		}, other},
		{"ephemeral claim", func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
		}, own},
		{"resource claim", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }, own},
	} {
		p := classPod()
		tt.change(p)
		before := p.DeepCopy()
		got := cmp.Or(map[string]string{base: same, "": own}[EquivalenceClass(p)], other)
		expect.Same(t, tt.name+": class", tt.want, got)
		expect.Same(t, tt.name+": the pod itself", before, p)
	}
}
