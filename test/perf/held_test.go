package perf

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// wrongHeld returns an error if the number of held-back pods that have a node is wrong.
func wrongHeld(pods []corev1.Pod, all, want int) error {
	got := 0
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			got++
		}
	}
	if got != want || len(pods) != all {
		return fmt.Errorf("%d of %d pods that are held back have a node, want %d of %d", got, len(pods), want, all)
	}
	return nil
}

// TestWrongHeldIsNoticed shows that a queue that admits too many pods, or none, fails the
// run.
func TestWrongHeldIsNoticed(t *testing.T) {
	held := func(all, placed int) []corev1.Pod {
		pods := make([]corev1.Pod, all)
		for i := range placed {
			pods[i].Spec.NodeName = "node"
		}
		return pods
	}
	if err := wrongHeld(held(200, 100), 200, 100); err != nil {
		t.Error(err)
	}
	for name, pods := range map[string][]corev1.Pod{
		"none": held(200, 0), "one more": held(200, 101), "all": held(200, 200), "pods are gone": held(199, 100),
	} {
		if wrongHeld(pods, 200, 100) == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}
