package store_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// impossibleStore has askers of two queues that are below their guarantee and for which
// no room can be made: the queue that has the room is guaranteed it. One asker of
// root.c, by far the youngest, would get room.
func impossibleStore(t *testing.T, askers int) *store.Store {
	t.Helper()
	s := store.New(queuestest.MustTree(t, `root
  a guaranteed.vcore=1000 props=preemption.delay:1s
  b guaranteed.vcore=100 props=preemption.delay:1s
  c guaranteed.vcore=1 props=preemption.delay:1s
  kept guaranteed.vcore=10
  lent`), store.Options{Window: 8, MaxWindow: 8})
	s.SetPreemption(store.PreemptionOptions{RetryInterval: 15 * time.Second, Round: time.Second, HoldTimeout: time.Hour})
	add := func(name, queue, node, vcore string, created time.Time) {
		p := newPod(name, queue, name, queuestest.Vector("pods=1 vcore="+vcore))
		p.Created, p.Node = created, node
		s.Upsert(p, epoch)
	}
	for n, queue := range []string{"root.kept", "root.lent"} {
		node := fmt.Sprint("n", n)
		s.UpsertNode(node, queuestest.Vector("vcore=10 pods=200"), epoch)
		for i := range 10 {
			add(fmt.Sprintf("on-%s-%d", node, i), queue, node, "1", epoch)
		}
	}
	for i := range askers {
		add(fmt.Sprintf("a%03d", i), []string{"root.a", "root.b"}[i%2], "", "11", epoch)
	}
	add("wanted", "root.c", "", "1", epoch.Add(5*time.Second))
	s.Start(epoch)
	return s
}

// planFor runs a cycle of a pod that finds no node, and plans for it as PostFilter does. It
// returns nil if no plan may be made, and whether the pod holds a node now.
func planFor(
	s *store.Store, uid types.UID, class string, fits func(node string, without []*planner.Pod) planner.Fit, now time.Time,
) (*planner.Decision, bool) {
	input, why := s.BeginPlan(uid, class, nil, now)
	if input == nil {
		s.NoNode(uid, class, why, now)
		return nil, false
	}
	params := input.Params
	params.Fits = fits
	d := search.Plan(input.Snapshot, input.Ask, params)
	if d.Outcome != planner.Preempt {
		why = s.RejectPlan(uid, &d, now)
	} else if why = s.AcceptPlan(uid, &d, now); why.None() {
		return &d, true
	}
	s.NoNode(uid, class, why, now)
	return &d, false
}

type played struct {
	plans   map[types.UID]int
	busiest int           // the largest number of plans in a second
	placed  time.Duration // when the asker that can get room got a plan
}

// playImpossible runs cycles and plans for some time, as often as the store allows.
func playImpossible(t *testing.T, s *store.Store, lasts time.Duration) played {
	t.Helper()
	out := played{plans: map[types.UID]int{}}
	seconds := map[int]int{}
	for now := epoch; now.Before(epoch.Add(lasts)); now = now.Add(50 * time.Millisecond) {
		for range 100 {
			if due, ok := s.NextDeadline(); ok && !due.After(now) {
				s.Tick(now)
			}
			refs := s.TakeActivations()
			if len(refs) == 0 {
				break
			}
			for _, r := range refs {
				d, held := planFor(s, r.UID, string(r.UID), nil, now)
				if d == nil {
					continue
				}
				out.plans[r.UID]++
				seconds[int(now.Sub(epoch)/time.Second)]++
				if held {
					out.placed = now.Sub(epoch)
				}
				if (d.Outcome == planner.Preempt) != held || held && r.UID != "wanted" {
					t.Fatalf("%s: %s", r.Name, d)
				}
			}
		}
		if due, ok := s.NextDeadline(); ok && !due.After(now) {
			t.Fatalf("at %v something was due %v ago, and no pod is tried", now.Sub(epoch), now.Sub(due))
		}
		if now.Nanosecond() == 0 {
			expect.OK(t, s.Check())
		}
	}
	for _, n := range seconds {
		out.busiest = max(out.busiest, n)
	}
	return out
}

// Plans that fail take a bounded part of the time. Still every asker gets its turn,
// soon after those that waited longer.
func TestPlansInVainAreBounded(t *testing.T) {
	const askers, lasts = 200, 90 * time.Second
	const price = 100 * time.Millisecond // five plans a second, on two nodes
	for _, c := range []struct {
		name    string
		limiter preemption.Limiter
		noticed bool
	}{
		{"as it is", preemption.NewLimiter(price, preemption.Turns), false},
		{"plans cost nothing", preemption.NewLimiter(0, preemption.Turns), true},
		{"no turns", preemption.NewLimiter(price, 1000), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := impossibleStore(t, askers)
			s.Model().Preemption.Limiter = c.limiter
			got := playImpossible(t, s, lasts)
			least, all := math.MaxInt, 0
			for _, n := range got.plans {
				all += n
				least = min(least, n)
			}
			if len(got.plans) < askers+1 {
				least = 0
			}
			bounded := got.busiest <= 11 && all <= 5*(int(lasts/time.Second)+2)
			fair := least > 0 && got.placed > 0 && got.placed <= 50*time.Second
			expect.That(t, (bounded && fair) != c.noticed,
				"%d plans, %d in a second, at least %d each; placed after %v", all, got.busiest, least, got.placed)
		})
	}
}

// sweepingStore has nodes full of possible victims, and two askers of one equivalence class.
func sweepingStore(t *testing.T, nodes int) *store.Store {
	t.Helper()
	s := store.New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=10 props=preemption.delay:1s\n  b"), store.Options{})
	s.SetPreemption(store.PreemptionOptions{RetryInterval: 15 * time.Second, Round: time.Second, HoldTimeout: time.Hour})
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
		plant  func(s *store.Store)
		only   int // the node that passes the filters
		within time.Duration
	}{
		{"the last node", func(*store.Store) {}, 249, 15 * time.Second},
		{"no node", func(*store.Store) {}, -1, 0},
		{"a store that forgets", func(s *store.Store) {
			for _, p := range s.Model().SortedPods() {
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
					d, held := planFor(s, r.UID, "class", fits, now)
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
			if c.name == "no node" {
				for node, n := range asked { // two pods, two sweeps of each in this time, two calls in each
					expect.That(t, n <= 8, "node %s was asked about %d times", node, n)
				}
				expect.Same(t, "nodes that were asked about", 250, len(asked))
			}
		})
	}
}

// TestBudgetsTouchNoNode: a drain changes a budget with each pod, and no plan is possible because of one.
func TestBudgetsTouchNoNode(t *testing.T) {
	s := impossibleStore(t, 2)
	before := s.Model().Cache.Nodes.Generation()
	s.UpsertBudget(objects.Budget{Namespace: "ns", Name: "b", Matches: func(map[string]string) bool { return true }}, epoch)
	s.DeleteBudget("ns", "b", epoch)
	expect.Same(t, "generation of the nodes", before, s.Model().Cache.Nodes.Generation())
}
