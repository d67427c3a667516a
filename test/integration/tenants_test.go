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
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// TestAVictimAsLargeAsEtcdStores: a tenant fills a pod up to the limit of etcd, so that it
// can be neither marked nor deleted. The plan that chooses it costs no pod, and the next one
// takes another pod.
func TestAVictimAsLargeAsEtcdStores(t *testing.T) {
	e := setup(t, owedQueues(100, 500*time.Millisecond), preemption("retryInterval", "1s"))
	part := e.apart("large", 0, localcluster.NodeSpec{})
	part.addNodes(2, localcluster.NodeSpec{CPU: "2"})
	lent := part.createPod(part.pod("lent", "lent", inQueue("root.borrows"), requests("cpu", "2")))
	part.awaitRunning(lent)
	eventually(e, patience, "the next pod is younger, so that it is chosen first", func() (bool, string) {
		return time.Since(lent.CreationTimestamp.Time) > time.Second, "" // the API server has seconds
	})
	large := part.createPod(part.pod("large", "large", inQueue("root.borrows"), requests("cpu", "2"), nearlyTooLarge))
	t.Cleanup(func() { // no delete succeeds before
		_, err := suite.client.CoreV1().Pods(large.Namespace).Patch(context.Background(), large.Name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"pad":null}}}`), metav1.PatchOptions{})
		expect.Holds(t, err)
	})
	part.awaitPod(large, "has all of its status", func(p *corev1.Pod) bool {
		return conditionIs(p, corev1.PodReady, corev1.ConditionTrue)
	})
	padFully(t, e, large)
	asker := part.createPod(part.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2")))
	part.awaitRunning(asker)
	for _, grace := range []int64{30, 0} { // what the advice says
		err := suite.client.CoreV1().Pods(large.Namespace).Delete(e.Context(), large.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
		expect.That(t, err != nil && strings.Contains(err.Error(), "request is too large"),
			"a delete with grace period %d: %v", grace, err)
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

func (e *env) pad(pod *corev1.Pod, n int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"pad":"%s"}}}`, strings.Repeat("y", n))
	_, err := suite.client.CoreV1().Pods(pod.Namespace).Patch(e.Context(), pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// padFully makes an annotation of a pod as long as the API server stores it, and returns its length.
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

// never is the name of a program that would make volumes, and does not run.
const never = "example.com/never"

// TestVolumesThatNeverCome: a pod with a claim that has no volume or does not exist preempts nothing
// and holds nothing, although its queue is below its guarantee. Pods that have a node and wait for
// volumes that are never made are charged to their queue, and lose the node when the time for binding
// is over: then the pods of a queue below its guarantee go first.
func TestVolumesThatNeverCome(t *testing.T) {
	e := setup(t, owedQueues(100, 500*time.Millisecond), preemption("retryInterval", "1s"), arg("VolumeBinding", "bindTimeoutSeconds", 2))
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.create("lent", 4, inQueue("root.borrows"))
	e.expect("lent", 4, 0, "")
	var volumeless []*corev1.Pod
	for name, option := range map[string]podOption{
		"missing": mounts("there-is-none"), "unbound": e.withClaim("unbound", e.storageClass("Immediate", never)),
	} {
		p := e.createPod(e.pod(name, name, inQueue("root.owed"), option))
		e.awaitPod(p, "was tried", func(p *corev1.Pod) bool { return conditionIs(p, corev1.PodScheduled, corev1.ConditionFalse) })
		volumeless = append(volumeless, p)
	}
	c.expectNoMore(2*calm, 0, "lent")
	for _, p := range volumeless {
		claim, _ := c.claim(p.UID)
		expect.Same(t, "node that is held for pod "+p.Name+", which cannot get its volume", "", claim.Node)
	}
	e.removePods(e.Context())

	later := e.storageClass("WaitForFirstConsumer", never)
	e.createPod(e.pod("never", "never", inQueue("root.borrows"), requests("cpu", "4"), e.withClaim("never", later)))
	e.awaitQueue("root.borrows", "is charged for the pod", func(q *documents.Queue) bool { return q.AllocatedResource["vcore"] == 4000 })
	e.awaitRunning(e.create("asker", 1, inQueue("root.owed"), requests("cpu", "4"))[0])
	running, _ := e.podsOf("never")
	expect.That(t, len(running) == 0, "%d pods run without their volumes", len(running))
}
