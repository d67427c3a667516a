package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// sweepingStore has nodes full of possible victims, and two askers of one equivalence
// class.
func sweepingStore(t *testing.T, nodes int) *Store {
	t.Helper()
	s := New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=10 props=preemption.delay:1s\n  b"), model.Options{})
	s.SetPreemption(PreemptionOptions{RetryInterval: 15 * time.Second, Round: time.Second, HoldTimeout: time.Hour})
	add := func(name, queue, node string) {
		p := newPod(name, queue, queue, queuestest.Vector("vcore=1 pods=1"))
		p.Node = node
		s.Upsert(p, epoch)
	}
	for n := range nodes {
		node := fmt.Sprintf("n%03d", n)
		s.UpsertNode(node, queuestest.Vector("vcore=1 pods=10"), epoch)
		add("on-"+node, "root.b", node)
	}
	add("first", "root.a", "")
	add("second", "root.a", "")
	s.Start(epoch)
	return s
}

// If the filters refuse more nodes than a plan may ask about, the following plans ask
// about the others, a second later each.
func TestPlansSweepTheNodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		plant  func(s *Store)
		only   int // the node that passes the filters
		within time.Duration
	}{
		{"the last node", func(*Store) {}, 249, 15 * time.Second},
		{"nobody", func(*Store) {}, -1, 0},
		{"a store that forgets", func(s *Store) {
			for _, p := range s.model.SortedPods() {
				if p.Asker != nil {
					p.Sweeping().Restart()
				}
			}
		}, 249, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sweepingStore(t, 250)
			asked := map[string]int{}
			fits := func(node string, _ []*planner.Pod) planner.Fit {
				if asked[node]++; node == fmt.Sprintf("n%03d", c.only) {
					return planner.Passes
				}
				return planner.Fails
			}
			var placed time.Duration
			for now := epoch; placed == 0 && now.Before(epoch.Add(25*time.Second)); now = now.Add(200 * time.Millisecond) {
				s.Tick(now)
				for _, r := range s.TakeActivations() {
					d, held := planFor(s, r.UID, "class", planner.Params{Fits: fits}, now)
					if held {
						placed = now.Sub(epoch)
					} else if d != nil && d.Outcome == planner.Preempt {
						t.Fatal("a plan is not accepted")
					}
				}
				if now.Nanosecond() == 0 {
					expect.OK(t, s.Check())
				}
				c.plant(s)
			}
			expect.That(t, placed <= c.within && (placed != 0 || c.within <= 0),
				"placed after %v; %d nodes were asked about", placed, len(asked))
			if c.name == "nobody" {
				for node, n := range asked {
					if n > 8 { // two pods, two sweeps of each in this time, two calls in each
						t.Fatalf("node %s was asked about %d times", node, n)
					}
				}
				expect.Same(t, "nodes that were asked about", 250, len(asked))
			}
		})
	}
}
