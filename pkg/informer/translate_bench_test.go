package informer

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// ordinary is a running pod as a Deployment creates it.
func ordinary() *corev1.Pod {
	pod := managed("web-6b8c9-x7k2p", "u1", "n1")
	pod.Labels = map[string]string{"app": "web", "pod-template-hash": "6b8c9"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6b8c9", UID: "rs", Controller: ptr.To(true)}}
	pod.Spec.Priority = ptr.To[int32](0)
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue})
	}
	return pod
}

func BenchmarkTranslate(b *testing.B) {
	bare := ordinary()
	bare.OwnerReferences = nil
	holder := ordinary()
	holder.Status.Conditions = append(holder.Status.Conditions, corev1.PodCondition{
		Type: reservations.HeldCondition, Status: corev1.ConditionTrue,
		Message: reservations.Claim{Node: "n1", Since: time.Unix(1e9, 0), Victims: []types.UID{"v1", "v2"}}.Message(),
	})
	daemon := ordinary()
	daemon.OwnerReferences[0].Kind = "DaemonSet"
	daemon.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}},
		}}},
	}}}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
	}{{"bare", bare}, {"ordinary", ordinary()}, {"daemon", daemon}, {"holder", holder}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Translate(c.pod, RequestOptions{})
			}
		})
	}
}
