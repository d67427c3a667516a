package integration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (e *env) selector(of string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: e.id, group: of}}
}

// inBackground deletes a controller's object, and its pods with it.
func inBackground() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background}
}
