package store

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

func askingPod(name string) objects.Pod {
	return newPod(name, "root.a", name, queuestest.Vector("vcore=1 pods=1"))
}

// TestWakeOnlyWithWork: a reader of Wake is not told without work, and once for all there is
// to do. That it is told of all work is asserted by the scripts.
func TestWakeOnlyWithWork(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	wakes := func(what string, times int) {
		t.Helper()
		expect.Same(t, what+": times told", times, len(s.Wake()))
		for range len(s.Wake()) {
			<-s.Wake()
		}
	}
	s.Start(epoch)
	wakes("nothing is there", 0)
	p := askingPod("p")
	s.Upsert(p, epoch)
	wakes("a pod is let through", 1)
	s.TakeActivations()
	s.NextDeadline()
	s.NoNode(p.UID, "", reasons.New(reasons.NoNodeFits, "none"), epoch)
	wakes("no deadline is earlier than before", 0)
	s.Gate(p.UID, epoch)
	s.Tick(epoch.Add(time.Second))
	s.Tick(epoch.Add(time.Second))
	wakes("it backed off, and is let through", 1)
}

// Assume does not admit the next pod, because the scheduler waits for it; the reader of Wake does.
func TestTheSlotOfAnAssumedPodIsGivenAwayLater(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{Window: 1, MaxWindow: 1})
	s.Start(epoch)
	s.Upsert(askingPod("p1"), epoch)
	s.Upsert(askingPod("p2"), epoch)
	s.TakeActivations()
	expect.That(t, s.Assume("p1", "n1", NoSnapshot, epoch).OK(), "the first pod is refused")
	_, keyed := s.Key("p2")
	expect.That(t, !keyed, "the next pod was let through while the scheduler waited")
	refs := s.TakeActivations()
	expect.That(t, len(refs) == 1 && refs[0].UID == "p2", "let through: %v, want the next pod", refs)
	expect.Holds(t, s.Check())
}

// TestWaitsForDeletedQueue: a snapshot may be older than the store.
func TestWaitsForDeletedQueue(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a\n  b"), model.Options{})
	s.Start(epoch)
	s.Upsert(askingPod("p"), epoch)
	s.NoNode("p", "", reasons.Brief(reasons.NoNodeFits), epoch)
	old, _ := s.Snapshot().Find("root.a")
	s.Delete("p", epoch)
	s.Configure(queuestest.MustTree(t, "root\n  b"), epoch)
	s.Tick(epoch.Add(time.Hour))
	_, there := s.Snapshot().Find("root.a")
	expect.That(t, !there, "it is still there")
	expect.Same(t, "it waits for", []reasons.Code{""}, s.WaitsFor([]*queues.Queue{old}, epoch))
}

// TestAttemptsOfARunningPod: its WaitState is dropped, and how often it was tried stays.
func TestAttemptsOfARunningPod(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	s.Start(epoch)
	p := askingPod("p")
	s.Upsert(p, epoch)
	s.NoNode(p.UID, "", reasons.Brief(reasons.NoNodeFits), epoch)
	p.Node = "n1"
	s.Upsert(p, epoch)
	expect.Same(t, "attempts that readers see", 1, s.model.RecordOf(s.model.Pods["p"]).Attempts())
	expect.Holds(t, s.Check())
}

// TestBlockedPodOfACompleteGroup: a pod that waits for its PodGroup returns to the order when the
// group is complete, although a plan for it is due before pods are admitted.
func TestBlockedPodOfACompleteGroup(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=4 props=preemption.delay:1s\n  b"), model.Options{})
	s.FollowPodGroups()
	s.Start(epoch)
	for _, name := range []string{"x1", "x2", "other"} {
		p := askingPod(name)
		if name != "other" {
			p.Labels[objects.PodGroupLabel] = "x"
		}
		if name == "x1" {
			p.Node = "n1"
		}
		s.Upsert(p, epoch)
	}
	s.SetPodGroup("ns", "x", 3, epoch)
	s.NoNode("other", "", reasons.Brief(reasons.NoNodeFits), epoch)
	s.TakeActivations()
	later := epoch.Add(time.Minute)
	s.Gate("other", later) // the order is about to change, so no pod is admitted
	s.SetPodGroup("ns", "x", 1, later)
	s.Tick(later)
	s.TakeActivations()
	expect.Holds(t, s.Check())
}

// TestManyRequestsHideNoPodBelowItsGuarantee: requests that no node can take, of other queues
// or below the same max, do not use up the bounds of the look at pods that go first (P2a).
func TestManyRequestsHideNoPodBelowItsGuarantee(t *testing.T) {
	for _, queue := range []string{"root.other", "root.p.h"} {
		s := New(queuestest.MustTree(t, `root
  other
  p max.vcore=1
    g guaranteed.vcore=1
    h guaranteed.vcore=1
    loose`), model.Options{})
		upsert := func(name, queue string, vcore int) {
			s.Upsert(newPod(name, queue, name, queuestest.Vector(fmt.Sprintf("pods=1 vcore=%d", vcore))), epoch)
			s.TakeActivations()
		}
		s.UpsertNode("n1", queuestest.Vector("vcore=10 pods=500"), epoch)
		s.Start(epoch)
		upsert("borrower", "root.p.loose", 1)
		upsert("owed", "root.p.g", 1)
		for i := range 300 {
			upsert(fmt.Sprintf("large-%03d", i), queue, 20+i)
		}
		s.Gate("borrower", epoch)
		v := s.Assume("borrower", "n1", NoSnapshot, epoch)
		expect.Same(t, "what the borrower is told beside requests of "+queue, reasons.InOrder, v.Reason.Code)
	}
}

// TestAPodGivesWayToEventsThatComeLate: the scheduler's snapshot has fewer pods on a node than
// the store, while another pod found no node. The pod that found the node goes back to the
// order until the store has these events, and no more often than the bound. Events that came
// 24 ms late took 15 tries of each of seven pods on two busy cores.
func TestAPodGivesWayToEventsThatComeLate(t *testing.T) {
	var s script
	datadriven.RunTestFromString(t, strings.Join([]string{
		"store started window=64\nroot\n  g guaranteed.vcore=4\n  loose\n----\n",
		"node n1 vcore=5 pods=10\n----\n",
		"upsert\ng1 queue=root.g node=n1 app=g\nwaits queue=root.g app=g\n----\nadmitted: waits\n",
		"gate waits\n----\nwaits: enters\n",
		"failed waits\n----\n",
		"upsert\nfound queue=root.loose app=l\n----\nadmitted: found\n",
		"gate found\n----\nfound: enters\n",
	}, "\n"), s.do)
	times := 0
	for ; times <= admission.MostGivenWay && s.assume(s.pods["found"], 0) != "granted"; times++ {
		s.takeActivations(&strings.Builder{})
	}
	expect.That(t, times >= 20 && times == admission.MostGivenWay,
		"the pod went back %d times, want the bound of %d, and 20 at least", times, admission.MostGivenWay)
}

// TestANodeBoundPodThatAMaxRefusesLateKeepsNoRoom: while pods come back to the order, the groups that a
// quota blocks are not checked again, although the quota may have got room. A node-bound pod may keep
// room for its node then (D0), enter such a group, and be refused by the check that follows.
func TestANodeBoundPodThatAMaxRefusesLateKeepsNoRoom(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  all\n  small max.vcore=3"), model.Options{})
	allocatable := queuestest.Vector("vcore=8 pods=10")
	s.UpsertNode("n1", allocatable, epoch)
	upsert := func(name, queue, app, vcore, on, requires string) {
		p := newPod(name, queue, app, queuestest.Vector("pods=1 vcore="+vcore))
		p.Node, p.RequiredNode = on, requires
		s.Upsert(p, epoch)
	}
	upsert("large", "root.small", "a", "2", "n1", "")
	upsert("rest", "root.small", "a", "1", "n1", "")
	upsert("blocked", "root.small", "a", "2", "", "")
	upsert("back", "root.all", "back", "1", "", "")
	s.Start(epoch)
	s.TakeActivations()
	s.NoNode("back", "", reasons.New(reasons.NoNodeFits, "none"), epoch)
	s.TakeActivations()
	s.Gate("back", epoch.Add(time.Minute))
	expect.That(t, s.Returning(), "no pod is coming back")
	s.Delete("large", epoch)
	upsert("bound", "root.small", "b", "2", "", "n1")
	goFirst := func() int { return len(s.NodeBound("n1").GoFirst(allocatable)) }
	expect.Same(t, "pods that keep room on the node while the max has room for one", 1, goFirst())
	upsert("used", "root.small", "b", "1", "n1", "")
	expect.Holds(t, s.Check())
	s.TakeActivations()
	expect.Holds(t, s.Check())
	expect.Same(t, "pods that keep room on the node, and a max refuses them", 0, goFirst())
}

// impossibleStore has askers of two queues that are below their guarantee and for which
// no room can be made: the queue that has the room is guaranteed it. One asker of
// root.c, by far the youngest, would get room.
func impossibleStore(t *testing.T, askers int) *Store {
	t.Helper()
	s := New(queuestest.MustTree(t, `root
  a guaranteed.vcore=1000 props=preemption.delay:1s
  b guaranteed.vcore=100 props=preemption.delay:1s
  c guaranteed.vcore=1 props=preemption.delay:1s
  kept guaranteed.vcore=10
  lent`), model.Options{Window: 8, MaxWindow: 8})
	s.SetPreemption(PreemptionOptions{RetryInterval: 15 * time.Second, Round: time.Second, HoldTimeout: time.Hour})
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
	s *Store, uid types.UID, class string, p planner.Params, now time.Time,
) (*planner.Decision, bool) {
	input, why := s.BeginPlan(uid, class, nil, now)
	if input == nil {
		s.NoNode(uid, class, why, now)
		return nil, false
	}
	p.StrictGuarantee = input.Strict
	d := search.Plan(input.Snapshot, input.Ask, p)
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
func playImpossible(t *testing.T, s *Store, lasts time.Duration) played {
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
				d, held := planFor(s, r.UID, string(r.UID), planner.Params{}, now)
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
			s.model.Preemption.Limiter = c.limiter
			got := playImpossible(t, s, lasts)
			least, all := math.MaxInt, 0
			for _, n := range got.plans {
				all += n
			}
			for _, p := range s.model.SortedPods() {
				if p.State != state.Bound {
					least = min(least, got.plans[p.UID])
				}
			}
			bounded := got.busiest <= 11 && all <= 5*(int(lasts/time.Second)+2)
			fair := least > 0 && got.placed > 0 && got.placed <= 50*time.Second
			expect.That(t, (bounded && fair) != c.noticed,
				"%d plans, %d in a second, at least %d each; placed after %v", all, got.busiest, least, got.placed)
		})
	}
}

// sweepingStore has nodes full of possible victims, and two askers of one equivalence class.
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
		{"no node", func(*Store) {}, -1, 0},
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
			if c.name == "no node" {
				for node, n := range asked { // two pods, two sweeps of each in this time, two calls in each
					expect.That(t, n <= 8, "node %s was asked about %d times", node, n)
				}
				expect.Same(t, "nodes that were asked about", 250, len(asked))
			}
		})
	}
}
