package preemption_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
)

// answer runs a cycle in which no node takes the pod, ends other pods, if any, and calls
// PostFilter. The store and the informers then know that those pods ended, and the
// snapshot of the cycle does not.
func (c *cluster) answer(t *testing.T, pod *corev1.Pod, ended ...*corev1.Pod) (string, *fwk.Status) {
	t.Helper()
	state, statuses := c.fail(t, pod)
	for _, p := range ended {
		expect.OK(t, c.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().Delete(p))
		c.store.Delete(p.UID, c.now)
	}
	result, status := c.postFilter(t, preemption.Name).PostFilter(t.Context(), state, pod, statuses)
	expect.Holds(t, c.store.Check())
	if result == nil {
		return "", status
	}
	return result.NominatedNodeName, status
}

// TestEndedPodsAreNotCountedOnTheNode: next to a pod that ended during the cycle, one victim
// is enough; two would be chosen if the ended pod was counted. The same holds if the
// store knows of a newer pod on the node, so that store and snapshot have equally many.
func TestEndedPodsAreNotCountedOnTheNode(t *testing.T) {
	for _, came := range []*corev1.Pod{nil, running("v4", "n1", 0)} {
		ended := running("v1", "n1", 100)
		c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 300)}, []*corev1.Pod{
			ended, running("v2", "n1", 100), running("v3", "n1", 100),
		})
		if came != nil {
			c.known(t, came)
			c.store.Upsert(c.translate(came), c.now)
		}
		on, status := c.answer(t, plugintest.Pod("asker", 200), ended)
		wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom: node n1 is held for the pod")
		if chosen := c.chosen(); len(chosen) != 1 {
			t.Errorf("chosen %v, want one pod", chosen)
		}
	}
}

// TestRoomThatCameByItself: capacity that became free during a cycle is not held for the
// pod that was tried, because other pods may be before it. The pod is tried again in its
// turn.
func TestRoomThatCameByItself(t *testing.T) {
	ended := running("v1", "n1", 100)
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200), node("n2", 200)}, []*corev1.Pod{
		ended, running("v2", "n1", 100), running("v3", "n2", 200),
	})
	asker := plugintest.Pod("asker", 100)
	on, status := c.answer(t, asker, ended)
	wantAnswer(t, on, status, "", fwk.Unschedulable, "pods on node n1 ended while this pod was tried; it is tried again in its turn")
	if h, holds := c.store.Holds().Of(asker.UID); holds {
		t.Errorf("it holds %+v", h)
	}
	c.wantChosen(t)
	if why := c.store.Explain(asker.UID); !strings.Contains(why.Text, "Insufficient cpu") {
		t.Errorf("people are told %v", why)
	}
	// If other pods use the capacity by then, victims are chosen.
	taken := running("v4", "n1", 100)
	c.known(t, taken)
	c.store.Upsert(c.translate(taken), c.now)
	time.Sleep(time.Second) // plans are at least this far apart
	state, statuses := c.fail(t, asker)
	result, status := c.postFilter(t, preemption.Name).PostFilter(t.Context(), state, asker, statuses)
	if result == nil || result.NominatedNodeName == "" {
		t.Errorf("no room is made for it: %v", status)
	}
}

// TestBoundWhileItIsPlannedFor: a plan for a pod that another scheduler binds meanwhile
// has no effect, whatever its result.
func TestBoundWhileItIsPlannedFor(t *testing.T) {
	for _, outcome := range []planner.Outcome{planner.Refuse, planner.Wait} {
		t.Run(string(outcome), func(t *testing.T) {
			c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{running("v1", "n1", 200)})
			asker := plugintest.Pod("asker", 100)
			c.fail(t, asker)
			input, why := c.store.BeginPlan(asker.UID, "", nil, c.now)
			if input == nil {
				t.Fatal(why)
			}
			bound := asker.DeepCopy()
			bound.Spec.NodeName = "n1"
			c.store.Upsert(c.translate(bound), c.now)
			if why := c.store.RejectPlan(asker.UID, &planner.Decision{Ask: input.Ask, Outcome: outcome, Node: "n1"}, c.now); why.Text != "the pod has a node" {
				t.Errorf("it is told %v", why)
			}
			expect.Holds(t, c.store.Check())
		})
	}
}
