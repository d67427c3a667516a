package integration

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// template makes the pod template of a controller: a pod of a group.
func (e *env) template(of string, options ...podOption) corev1.PodTemplateSpec {
	p := e.pod("", of, append(options, inQueue("root."+of))...)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}
}

func (e *env) selector(of string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: e.id, group: of}}
}

// inBackground deletes a controller's object, and its pods with it.
func inBackground() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background}
}
