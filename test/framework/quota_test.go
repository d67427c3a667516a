package framework_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
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
	if n := c.probe.cyclesOf(held[0]); n != 1 {
		t.Errorf("it had %d cycles, want 1", n)
	}
	c.eventually("the books say so", func() bool { return c.used("root.small") == 1 && c.pending() == 49 })
	if n := c.probe.cyclesOf(held[1]); n != 0 {
		t.Errorf("the next one had %d cycles", n)
	}
	expect.Holds(t, c.store.Check())
}

// plainRefusal answers Unschedulable where our PreFilter answers
// UnschedulableAndUnresolvable.
type plainRefusal struct{ *preemption.Plugin }

func (p plainRefusal) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	result, status := p.Plugin.PreFilter(ctx, state, pod, nodes)
	if status.Code() == fwk.UnschedulableAndUnresolvable {
		return result, fwk.NewStatus(fwk.Unschedulable, status.Reasons()...)
	}
	return result, status
}

// A pod is admitted, and its quota is gone when its cycle begins. The next plugin in
// postFilter must not take that for a lack of nodes. Here the next plugin is upstream's
// preemption, although the command does not allow it in a managed profile.
func TestQuotaRefusalDoesNotPreempt(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain refusal %v", plain), func(t *testing.T) {
			o := options{queues: twoQueues, defaultPreemption: true}
			if plain {
				o.registry = frameworkruntime.Registry{
					preemption.Name: func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
						plugin, err := preemption.New(ctx, args, h)
						if err != nil {
							return nil, err
						}
						return plainRefusal{plugin.(*preemption.Plugin)}, nil
					},
				}
			}
			c := start(t, o)
			c.addNodes(1, 1) // full with the victim
			victim := onNode(pod(other, "victim", 0), "node-000")
			c.api.create(t, victim)
			c.seen(1, 1)
			asker := inQueue(pod(managed, "asker", 1), "small", "app")
			*asker.Spec.Priority = 100
			c.probe.cycle = func(p *corev1.Pod) {
				if p.UID == asker.UID && c.api.pod("default", "thief") == nil {
					thief := onNode(inQueue(pod(managed, "thief", 2), "small", "thief"), "node-000")
					*thief.Spec.Priority = 1000
					c.api.create(t, thief)
					c.eventually("the quota is taken", func() bool { return c.used("root.small") == 1 })
				}
			}
			c.api.create(t, asker)
			c.eventually("the asker was refused", func() bool {
				told := condition(c.api.pod("default", "asker"), corev1.PodScheduled)
				return told != nil && told.Status == corev1.ConditionFalse
			})
			preempts := func() bool { return c.api.pod("default", "victim") == nil }
			if plain {
				c.eventually("upstream preempts, so that the other case shows something", preempts)
				return
			}
			c.eventually("the asker waits for its quota", func() bool {
				return c.store.Explain(asker.UID).Code == "OverMax"
			})
			if preempts() {
				t.Error("a pod was deleted for a pod that is over its quota")
			}
		})
	}
}
