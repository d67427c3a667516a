package framework_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// twoQueues are a small queue and one without limits.
const twoQueues = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: small, resources: {max: {pods: 1}}}
    - {name: large}
`

// used is the allocated usage of a queue, in pods.
func (c *cluster) used(queue string) int {
	q, ok := c.store.Snapshot().Find(queue)
	if !ok {
		c.t.Fatalf("there is no queue %s", queue)
	}
	return pods(q)
}

func pods(q *queues.Queue) int { return int(q.Allocated.Get("pods")) }

// bound tells whether the API server has the pod on a node.
func (c *cluster) bound(p *corev1.Pod) bool {
	now := c.api.pod(p.Namespace, p.Name)
	return now != nil && now.Spec.NodeName != ""
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func TestPodOverQuotaIsHeldWithoutCyclesAndReleasedByOneEvent(t *testing.T) {
	c := start(t, options{queues: twoQueues})
	c.addNodes(2, 10)
	first := inQueue(pod(managed, "first", 0), "small", "app")
	c.api.create(t, first)
	c.eventually("the first pod is bound", func() bool { return c.bound(first) && c.used("root.small") == 1 })
	var held []*corev1.Pod
	for i := range 50 {
		held = append(held, inQueue(pod(managed, fmt.Sprintf("held-%02d", i), 1+i), "small", "app"))
	}
	c.api.create(t, held...)
	c.eventually("the others are known", func() bool { return c.pending() == len(held) })

	// Whatever happens to the cluster, they are not tried.
	c.addMoreNodes(2, 5, 10)
	foreign := pod(other, "foreign", 100)
	c.api.create(t, foreign)
	c.eventually("the foreign pod is bound", func() bool { return c.bound(foreign) })
	c.api.delete(t, foreign)
	c.eventually("the reason of the wait is told", func() bool {
		told := condition(c.api.pod("default", held[49].Name), "paddock.io/Admitted")
		return told != nil && told.Status == corev1.ConditionFalse && told.Reason == "OverMax"
	})
	for _, p := range held {
		if n := c.probe.cyclesOf(p); n != 0 {
			t.Fatalf("%s had %d cycles while its queue was full", p.Name, n)
		}
		if told := condition(c.api.pod("default", p.Name), corev1.PodScheduled); told != nil {
			t.Fatalf("%s has the condition that wakes autoscalers: %v", p.Name, told)
		}
	}

	c.api.delete(t, first)
	c.eventually("the first of the others is bound", func() bool { return c.bound(held[0]) })
	expect.Same(t, "its cycles", 1, c.probe.cyclesOf(held[0]))
	c.eventually("the books say so", func() bool { return c.used("root.small") == 1 && c.pending() == 49 })
	expect.Same(t, "cycles of the next one", 0, c.probe.cyclesOf(held[1]))
	expect.Holds(t, c.store.Check())
}
