package integration

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// withFinalizer gives a pod a finalizer, which keeps its object after its end until the
// end of the test.
func (e *env) withFinalizer(p *corev1.Pod) {
	p.Finalizers = append(p.Finalizers, "integration.paddock.io/stay")
	e.Cleanup(func() {
		_, err := suite.client.CoreV1().Pods(p.Namespace).Patch(context.Background(), p.Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		e.ok(err)
	})
}

// TestFinalizers: a finalizer keeps the object of a pod, and nothing else. The room of a
// victim is free once its containers have ended, and no further victim is chosen. The hold
// of an asker ends when the asker is deleted, and its room goes to others.
func TestFinalizers(t *testing.T) {
	e := setup(t, forgedQueues, twoProfiles, preemption("retryInterval", "1s"))
	c := e.keepHistory()
	e.run("on victims", func(e *env) {
		part := e.apart("victims", 1, localcluster.NodeSpec{CPU: "4"})
		part.create("victim", 4, inQueue("root.evil"), e.withFinalizer)
		e.expect("victim", 4, 0, "")
		part.awaitRunning(part.createPod(part.pod("asker", "asker", inQueue("root.team"), requests("cpu", "2"))))
		c.expectNoMore(calm, 2, "victim")
		for _, v := range c.evicted("victim") {
			if now := e.get(v.pod); now.UID != v.pod.UID || now.Status.Phase != corev1.PodFailed {
				e.Errorf("pod %s is %s: its finalizer did not keep it", v.pod.Name, now.Status.Phase)
			}
		}
		e.expectBooks()
	})
	e.run("on an asker", func(e *env) {
		part := e.apart("asker", 1, localcluster.NodeSpec{CPU: "4"})
		part.create("slow", 1, inQueue("root.evil"), requests("cpu", "4"), stopsAfter(2*time.Second))
		e.expect("slow", 1, 0, "")
		asker := part.createPod(part.pod("leaves", "leaves", inQueue("root.team"), requests("cpu", "4"), e.withFinalizer))
		e.awaitPod(asker, "holds its node", func(p *corev1.Pod) bool { return conditionIs(p, held, corev1.ConditionTrue) })
		c.expectEvicted("slow", 1)
		e.delete(asker)
		var holds documents.Holds
		eventually(e, patience, "no node is held", func() (bool, string) {
			e.own("holds", &holds)
			return len(holds.Holds) == 0, ""
		})
		part.awaitRunning(part.createPod(part.pod("other", "other", ofProfile(corev1.DefaultSchedulerName), requests("cpu", "4"))))
		if now := e.get(asker); now.DeletionTimestamp == nil || now.Spec.NodeName != "" {
			e.Errorf("the asker was deleted at %v and is on node %q", now.DeletionTimestamp, now.Spec.NodeName)
		}
	})
}
