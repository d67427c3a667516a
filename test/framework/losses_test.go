package framework_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// contested is a node full of pods of a borrowing queue, and another scheduler that does
// not know of holds.
type contested struct {
	*cluster
	began   time.Time
	evicted []time.Duration // time since it began
	foreign int
}

func startContested(t *testing.T, cores int) *contested {
	c := &contested{}
	c.cluster = start(t, options{queues: lentQueues, backoff: 1, before: func(on *cluster) { on.addNodes(1, int64(cores)) }})
	c.api.stays = func(*corev1.Pod) bool { return true }
	for i := range cores {
		c.api.create(t, onNode(inQueue(pod(managed, fmt.Sprintf("borrower-%02d", i), i), "root.borrows", fmt.Sprint(i)), "node-000"))
	}
	time.Sleep(time.Second)
	c.began = time.Now()
	return c
}

// ask creates a pod of one core in a queue below its guarantee. Its controller is the
// same each time.
func (c *contested) ask(t *testing.T, name string) *corev1.Pod {
	p := inQueue(pod(managed, name, 0), "root.owed", name)
	p.CreationTimestamp = metav1.Now()
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: ptr.To(true)}}
	c.api.create(t, p)
	return p
}

// takeRoom is the other scheduler. It places a pod on the node.
func (c *contested) takeRoom(t *testing.T) {
	c.api.create(t, onNode(pod("somebody-else", fmt.Sprintf("foreign-%02d", c.foreign), 0), "node-000"))
	c.foreign++
}

// pass lets time pass in steps of a tenth of a second, in which deleted pods end. Before
// that the other scheduler takes their room, if the argument says so.
func (c *contested) pass(t *testing.T, d time.Duration, taken bool) {
	for range d / (100 * time.Millisecond) {
		time.Sleep(100 * time.Millisecond)
		c.api.mu.Lock()
		var going []*corev1.Pod
		for _, p := range c.api.pods {
			if p.DeletionTimestamp != nil {
				going = append(going, p)
			}
		}
		c.api.mu.Unlock()
		for _, p := range going {
			c.evicted = append(c.evicted, time.Since(c.began).Round(time.Second))
			if taken {
				c.takeRoom(t)
			}
			c.api.delete(t, p)
		}
	}
	if err := c.store.Check(); err != nil {
		t.Error(err)
	}
}

// TestLostRoomCostsTheLoserOnly: another scheduler takes all room that is made. In ten
// minutes six pods are preempted in vain, each after twice the time of the one before.
// Then the asker gets the room.
func TestLostRoomCostsTheLoserOnly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := startContested(t, 10)
		defer c.end()
		asker := c.ask(t, "asker")
		c.pass(t, 10*time.Minute, true)
		var waits []time.Duration
		for i := range c.evicted[1:] {
			waits = append(waits, (c.evicted[i+1] - c.evicted[i]).Round(5*time.Second))
		}
		if want := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute}; !slices.Equal(waits, want) {
			t.Errorf("pods went at %v, %v apart, want %v", c.evicted, waits, want)
		}
		now := c.api.pod("default", "asker")
		held := condition(now, corev1.PodConditionType(reservations.HeldCondition))
		want := "others took the room on node node-000: default/foreign-05 of somebody-else; this is loss 6 in a row, so no plan is made for the pod for 8m0s"
		if held == nil || held.Status != corev1.ConditionFalse || held.Reason != string(reasons.HoldSuperseded) || !strings.HasPrefix(held.Message, want) {
			t.Errorf("the asker is told %+v, want %q", held, want)
		}
		if n := c.probe.noted(string(reasons.HoldSuperseded)); n != 6 {
			t.Errorf("%d events tell of lost rooms, want 6", n)
		}
		c.pass(t, 8*time.Minute, false)
		if now := c.api.pod("default", "asker"); now.Spec.NodeName != "node-000" || len(c.evicted) != 7 {
			t.Errorf("the asker is on node %q after %d pods went: %v", now.Spec.NodeName, len(c.evicted), c.store.Explain(asker.UID))
		}
	})
}

// TestRefusedByTheKubelet: the other scheduler binds a pod at the same time as ours, and
// the kubelet rejects ours. The replacement of our pod waits like a pod that lost its
// room.
func TestRefusedByTheKubelet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := startContested(t, 5)
		defer c.end()
		var waits []time.Duration
		for i := range 3 {
			name := fmt.Sprintf("asker-%d", i)
			asked := time.Now()
			c.ask(t, name)
			for c.api.pod("default", name).Spec.NodeName == "" {
				if c.pass(t, 100*time.Millisecond, false); time.Since(asked) > 5*time.Minute {
					t.Fatalf("%s does not start: %v", name, c.store.Explain(types.UID(name)))
				}
			}
			waits = append(waits, time.Since(asked).Round(5*time.Second))
			c.takeRoom(t)
			c.api.refuse(name)
		}
		c.pass(t, time.Second, false)
		// The first one waits only for preemption.delay.
		if diff := cmp.Diff([]time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second}, waits); diff != "" {
			t.Errorf("askers waited (-want +got)\n%s", diff)
		}
		if n := c.probe.noted(string(reasons.HoldSuperseded)); n != 3 {
			t.Errorf("%d events tell of lost rooms, want 3", n)
		}
	})
}
