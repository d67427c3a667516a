package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// TestAVictimAsLargeAsEtcdStores: a tenant fills a pod up to the limit of etcd, so that it
// can be neither marked nor deleted. The plan that chooses it costs no pod, and the next one
// takes another pod.
func TestAVictimAsLargeAsEtcdStores(t *testing.T) {
	e := setup(t, teamQueues, preemption("retryInterval", "1s"))
	part := e.apart("large", 0, localcluster.NodeSpec{})
	part.addNodes(2, localcluster.NodeSpec{CPU: "2"})
	lent := part.createPod(part.pod("lent", "lent", inQueue("root.evil"), requests("cpu", "2")))
	part.awaitRunning(lent)
	eventually(e, patience, "the next pod is younger, so that it is chosen first", func() (bool, string) {
		return time.Since(lent.CreationTimestamp.Time) > time.Second, "" // the API server has seconds
	})
	large := part.createPod(part.pod("large", "large", inQueue("root.evil"), requests("cpu", "2"), nearlyTooLarge))
	t.Cleanup(func() { // no delete succeeds before
		_, err := suite.client.CoreV1().Pods(large.Namespace).Patch(context.Background(), large.Name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"pad":null}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	part.awaitPod(large, "has all of its status", func(p *corev1.Pod) bool {
		return conditionIs(p, corev1.PodReady, corev1.ConditionTrue)
	})
	padFully(t, e, large)
	asker := part.createPod(part.pod("asker", "asker", inQueue("root.team"), requests("cpu", "2")))
	part.awaitRunning(asker)
	for _, grace := range []int64{30, 0} { // what the advice says
		err := suite.client.CoreV1().Pods(large.Namespace).Delete(e.Context(), large.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
		if err == nil || !strings.Contains(err.Error(), "request is too large") {
			t.Errorf("a delete with grace period %d: %v", grace, err)
		}
	}
	told := slices.DeleteFunc(expect.Get(eventsOf(e.Context(), asker))(t), func(v corev1.Event) bool {
		return v.Reason != "HoldGivenUp" || !strings.Contains(v.Message, "shorten its annotations")
	})
	expect.Same(t, "plans that were given up for the large pod", 1, len(told))
}

// nearlyTooLarge makes a pod so large that annotations can fill it up to the limit of etcd.
func nearlyTooLarge(p *corev1.Pod) {
	for i := range 14 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", i), Value: strings.Repeat("x", 100_000)})
	}
}

// pad gives a pod an annotation of n bytes.
func (e *env) pad(pod *corev1.Pod, n int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"pad":"%s"}}}`, strings.Repeat("y", n))
	_, err := suite.client.CoreV1().Pods(pod.Namespace).Patch(e.Context(), pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// padFully makes an annotation of a pod as long as the API server stores it, and returns
// its length.
func padFully(t *testing.T, e *env, pod *corev1.Pod) int {
	fits, refused := 0, 250_000
	for refused-fits > 1 {
		middle := (fits + refused) / 2
		switch err := e.pad(pod, middle); {
		case err == nil:
			fits = middle
		case strings.Contains(err.Error(), "request is too large"):
			refused = middle
		default:
			t.Fatal(err)
		}
	}
	if fits == 0 {
		t.Fatal("no annotation fits the pod")
	}
	return fits
}
