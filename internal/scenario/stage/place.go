package stage

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/scenario"
)

// groupLabel has the group of a pod.
const groupLabel = "group.example.com"

// place gives a pod the scenario's requirements beside room.
func (s *Stage) place(pod *corev1.Pod, p scenario.Place) {
	if p.Port != 0 {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: p.Port, HostPort: p.Port, Protocol: corev1.ProtocolTCP}}
	}
	if p.Group != "" {
		pod.Labels[groupLabel] = s.Name(p.Group)
	}
	if p.Apart != "" || p.Beside != "" {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Apart != "" {
		pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.onNode(p.Apart)}
	}
	if p.Beside != "" {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.onNode(p.Beside)}
	}
	if p.Spread != "" {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: s.group(p.Spread),
		}}
	}
}

// onNode returns the pods of a group on a node.
func (s *Stage) onNode(group string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{LabelSelector: s.group(group), TopologyKey: corev1.LabelHostname}}
}

func (s *Stage) group(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{groupLabel: s.Name(name)}}
}
