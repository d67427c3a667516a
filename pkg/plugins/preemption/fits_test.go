package preemption

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// TestEndedPodsAreRecognised: a pod that the scheduler's cache still has is gone if the
// informers do not have it, have another pod of its name, or have it as ended.
func TestEndedPodsAreRecognised(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	pl := &Plugin{pods: corelisters.NewPodLister(indexer)}
	pod := func(name, uid string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}, Status: corev1.PodStatus{Phase: phase}}
	}
	for _, p := range []*corev1.Pod{
		pod("runs", "1", corev1.PodRunning), pod("assumed", "2", corev1.PodPending),
		pod("again", "new", corev1.PodRunning), pod("done", "4", corev1.PodSucceeded), pod("failed", "5", corev1.PodFailed),
	} {
		put(t, indexer, p)
	}
	for uid, want := range map[string]struct {
		name string
		over bool
	}{
		"1": {"runs", false}, "2": {"assumed", false},
		"3": {"again", true}, "4": {"done", true}, "5": {"failed", true}, "6": {"deleted", true},
	} {
		if got := !pl.exists(pod(want.name, uid, corev1.PodRunning)); got != want.over {
			t.Errorf("%s: gone is %t, want %t", want.name, got, want.over)
		}
	}
}
