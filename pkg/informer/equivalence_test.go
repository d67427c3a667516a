package informer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func classPod() *corev1.Pod {
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "red", Name: "job-0", UID: "u0",
			Labels:          map[string]string{"job": "job", "batch.kubernetes.io/job-completion-index": "0"},
			Annotations:     map[string]string{"batch.kubernetes.io/job-completion-index": "0"},
			OwnerReferences: []metav1.OwnerReference{{UID: "job", Controller: &controller}},
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
	base := EquivalenceClass(classPod())
	if base == "" {
		t.Fatal("an ordinary pod has no class")
	}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	for _, tt := range []struct {
		name   string
		change func(p *corev1.Pod)
		same   bool
	}{
		{"nothing", func(*corev1.Pod) {}, true},
		{"name, UID, creation", func(p *corev1.Pod) { p.Name, p.UID, p.CreationTimestamp = "job-1", "u1", metav1.Now() }, true},
		{"annotation", func(p *corev1.Pod) { p.Annotations["x"] = "y" }, true},
		{"status", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, true},
		{"completion index", func(p *corev1.Pod) {
			p.Labels["batch.kubernetes.io/job-completion-index"] = "1"
			p.Spec.Hostname = "job-1"
		}, true},
		{"service account volume", func(p *corev1.Pod) {
			p.Spec.Volumes[0].Name, p.Spec.Containers[0].VolumeMounts[0].Name = "kube-api-access-b", "kube-api-access-b"
		}, true},
		{"arguments and environment", func(p *corev1.Pod) {
			p.Spec.Containers[0].Args, p.Spec.Containers[0].Env = []string{"1"}, []corev1.EnvVar{{Name: "I"}}
		}, true},
		{"namespace", func(p *corev1.Pod) { p.Namespace = "blue" }, false},
		{"label", func(p *corev1.Pod) { p.Labels["job"] = "other" }, false},
		{"controller", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, false},
		{"request", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}, false},
		{"host port", func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }, false},
		{"init container", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "init"}} }, false},
		{"node selector", func(p *corev1.Pod) { p.Spec.NodeSelector["zone"] = "b" }, false},
		{"toleration", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}} }, false},
		{"affinity", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} }, false},
		{"spreading", func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
		}, false},
		{"priority", func(p *corev1.Pod) { p.Spec.Priority = new(int32) }, false},
		{"claim", func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: claim})
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := classPod()
			tt.change(p)
			if got := EquivalenceClass(p); got == "" || (got == base) != tt.same {
				t.Errorf("class is %q, the other's %q; want the same: %v", got, base, tt.same)
			}
		})
	}
}

func TestPodsThatAreTheirOwnEquivalenceClass(t *testing.T) {
	p := classPod()
	p.Spec.Volumes[0] = corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	expect.Same(t, "pod with an ephemeral claim is of class", "", EquivalenceClass(p))
	p = classPod()
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	expect.Same(t, "pod with a resource claim is of class", "", EquivalenceClass(p))
}

func TestEquivalenceClassLeavesThePodAlone(t *testing.T) {
	p := classPod()
	EquivalenceClass(p)
	if p.Spec.Hostname == "" || len(p.Spec.Volumes) != 1 || len(p.Spec.Containers[0].Args) != 1 {
		t.Errorf("the pod was changed: %+v", p.Spec)
	}
}
