package framework_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pods without a queue are taken in upstream's order, with and without pods of queues
// among them.
func TestOrderOfForeignPodsIsUpstreams(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var foreign, mixed []*corev1.Pod
	for i := range 300 {
		p := pod(other, fmt.Sprintf("foreign-%03d", random.IntN(1e9)), random.IntN(100))
		*p.Spec.Priority = int32(random.IntN(5)) - 2
		foreign = append(foreign, p)
		mixed = append(mixed, p)
		if i%2 == 0 {
			q := inQueue(pod(managed, fmt.Sprintf("managed-%03d", i), i), "large", "app")
			*q.Spec.Priority = int32(random.IntN(5)) - 2
			mixed = append(mixed, q)
		}
	}
	sequence := func(o options, pods []*corev1.Pod) []types.UID {
		o.queues = twoQueues
		o.before = func(c *cluster) {
			c.addNodes(10, 100)
			c.api.create(t, pods...)
		}
		c := start(t, o)
		c.eventually("all pods had a cycle", func() bool { return c.probe.allCycles() == len(pods) })
		c.stop()
		return slices.DeleteFunc(c.probe.sequence(), func(uid types.UID) bool { return uid[0] == 'm' })
	}
	want := sequence(options{stock: true}, foreign)
	for name, pods := range map[string][]*corev1.Pod{"foreign pods only": foreign, "with pods of queues": mixed} {
		if got := sequence(options{}, pods); !slices.Equal(got, want) {
			t.Errorf("%s: taken in the order\n%v\nand by upstream\n%v", name, got, want)
		}
	}
}

// Every pod that fits no node gets, once, the condition that cluster autoscalers read;
// and when there is room for all, all run.
func TestEveryPodIsUnschedulableOnceAndRunsWhenNodesCome(t *testing.T) {
	c := start(t, options{queues: twoQueues, backoff: 1})
	c.addNodes(1, 1)
	c.api.create(t, onNode(pod(other, "filler", 0), "node-000"))
	c.seen(1, 1)
	var pending []*corev1.Pod
	for i := range 400 {
		pending = append(pending, inQueue(pod(managed, fmt.Sprintf("pod-%03d", i), i), "large", "app"))
	}
	c.api.create(t, pending...)
	c.settle(len(pending))
	for _, p := range pending {
		c.eventually(p.Name+" is told", func() bool {
			told := condition(c.api.pod("default", p.Name), corev1.PodScheduled)
			return told != nil && told.Status == corev1.ConditionFalse && told.Reason == corev1.PodReasonUnschedulable
		})
	}
	if n := c.probe.allCycles(); n != len(pending) {
		t.Errorf("%d cycles for %d pods", n, len(pending))
	}
	c.addMoreNodes(1, 10, 50)
	c.eventually("all pods are bound", func() bool { return !slices.ContainsFunc(pending, func(p *corev1.Pod) bool { return !c.bound(p) }) })
	if n := c.probe.allCycles(); n > 2*len(pending)+20 {
		t.Errorf("%d cycles for %d pods that all fit the second time", n, len(pending))
	}
	c.eventually("the books are right", func() bool { return c.used("root.large") == len(pending) && c.store.Check() == nil })
}

func TestNothingIsLeftRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c := start(t, options{queues: twoQueues})
	c.addNodes(2, 2)
	var pending []*corev1.Pod
	for i := range 20 {
		pending = append(pending, inQueue(pod(managed, fmt.Sprintf("pod-%03d", i), i), "large", "app"))
	}
	c.api.create(t, pending...)
	c.eventually("some run", func() bool { return c.used("root.large") == 4 })
	c.stop()
	// Upstream's metrics check only once a second whether they may end.
	c.eventually("no goroutine is left", func() bool { return goleak.Find(before) == nil })
}
