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
