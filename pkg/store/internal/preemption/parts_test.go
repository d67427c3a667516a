package preemption_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

var epoch = time.Unix(1_700_000_000, 0)

// TestPlansArePaid: failed plans overdraw the account, no plan is made until it is paid,
// and pods take turns until it is full.
func TestPlansArePaid(t *testing.T) {
	l := preemption.NewLimiter(time.Millisecond, 3)
	look := func(what string, now time.Time, from time.Duration, turns bool, waiting, room int) {
		t.Helper()
		l.Recover(now)
		expect.Same(t, what+": a plan may be made after", from, l.PlansFrom(now).Sub(epoch))
		expect.Same(t, what+": pods take turns", turns, l.TakesTurns())
		got := l.Room(waiting)
		expect.That(t, got == room || room < 0 && got >= 1e9, "%s: %d may join, want %d", what, got, room)
		expect.Holds(t, l.Check())
	}
	look("at first", epoch, 0, false, 5, -1)
	l.PlanFailed(1000, 0, epoch)
	look("used up", epoch, 0, false, 5, -1)
	l.PlanFailed(100, 20, epoch)
	look("overdrawn", epoch, 500*time.Millisecond, true, 1, 0)
	look("paid", epoch.Add(time.Second), time.Second, true, 0, 3)
	look("almost full", epoch.Add(1499*time.Millisecond), 1499*time.Millisecond, true, 2, 0)
	look("full", epoch.Add(1500*time.Millisecond), 1500*time.Millisecond, false, 5, -1)
}

// TestRoundsBoundVictims: the first plan of a round may be larger than the bound, the next
// ones must fit.
func TestRoundsBoundVictims(t *testing.T) {
	for _, c := range []struct {
		name            string
		most, chosen, n int
		after, want     time.Duration
	}{
		{"no bound", 0, 100, 100, 0, 0},
		{"first of a round", 3, 0, 5, 0, 0},
		{"it fits", 3, 2, 1, 0, 0},
		{"it does not fit", 3, 2, 2, 0, time.Second},
		{"next round", 3, 3, 3, time.Second, time.Second},
	} {
		p := preemption.New()
		p.Options.MaxVictims = c.most
		p.VictimsChosen(c.chosen, epoch)
		expect.Same(t, c.name, c.want, p.VictimsFrom(c.n, epoch.Add(c.after)).Sub(epoch))
	}
}

// TestPause checks the bounds of the pause, also for long retry intervals and after plans that
// were undone.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		retry time.Duration
		n     int
		want  time.Duration
	}{
		{15 * time.Second, 1, 15 * time.Second}, {15 * time.Second, 2, 30 * time.Second},
		{15 * time.Second, 7, 16 * time.Minute}, {15 * time.Second, 1_000_000, 16 * time.Minute},
		{5 * time.Minute, 5, time.Hour}, {2 * time.Hour, 1, 2 * time.Hour},
		{2 * time.Hour, 9, 2 * time.Hour},
	} {
		o := preemption.Options{RetryInterval: c.retry}
		expect.Same(t, fmt.Sprintf("loss %d with retry interval %v", c.n, c.retry), c.want, o.Pause(c.n))
	}
	for n := 1; n < 100; n++ {
		o := preemption.DefaultOptions()
		short, long := o.ShortPause(n), o.Pause(n)
		expect.That(t, 0 < short && short <= long && (n == 1 || short >= o.ShortPause(n-1)),
			"plan %d that was undone: %v, and %v for a loss", n, short, long)
	}
}

// TestInheritedLosses: a pod that replaces another one has lost as often, and no room of its own.
func TestInheritedLosses(t *testing.T) {
	l := preemption.Losses{Count: 2, LostDecision: "decision", PlacedAt: epoch}
	got := l.Inherited()
	expect.That(t, got.LostDecision == "" && got.PlacedAt.IsZero() && got.Count == 2, "%+v", got)
}

// TestWatches: watched changes are returned once, in a fixed order, at most once a second.
func TestWatches(t *testing.T) {
	q, n := preemption.WatchedQueue(7), preemption.WatchedNode("n1")
	w := preemption.NewWatches()
	take := func(what string, at time.Duration, want ...types.UID) {
		t.Helper()
		expect.Same(t, what, want, w.Take(epoch.Add(at)))
		expect.Holds(t, w.Check())
	}
	w.Change(n)
	expect.That(t, w.Idle() && !w.Has("b") && w.Due().IsZero(), "a change without a watch has an effect")
	w.Set("b", []preemption.Watched{n, q, n})
	w.Set("a", []preemption.Watched{q})
	take("nothing changed", time.Hour)
	w.Change(n)
	w.Change(q)
	take("both changed", 0, "b", "a")
	take("taken", time.Hour)
	w.Change(q)
	expect.Same(t, "due at", epoch.Add(time.Second), w.Due())
	take("too soon", 999*time.Millisecond)
	w.Remove("b")
	take("one left", time.Second, "a")
	w.Set("a", nil)
	expect.That(t, w.Idle() && !w.Has("a"), "it watches nothing, and is listed")
	expect.Holds(t, w.Check())
}

// TestWatchesCheck: a list that the caller changed is noticed.
func TestWatchesCheck(t *testing.T) {
	w := preemption.NewWatches()
	what := []preemption.Watched{preemption.WatchedNode("n1")}
	w.Set("a", what)
	what[0] = preemption.WatchedNode("n2")
	expect.That(t, w.Check() != nil, "a watch that points one way is not noticed")
}

// TestSnapshotIsRenewed: only changed nodes are made again, and a list that was handed out
// does not change.
func TestSnapshotIsRenewed(t *testing.T) {
	var s preemption.Snapshot
	there := map[string]bool{"a": true, "b": true, "c": true}
	update := func() string { // returns the nodes, and those that were made again
		made := ""
		s.Update(math.MaxInt, func(name string) *planner.Node {
			made += name
			if !there[name] {
				return nil
			}
			return &planner.Node{Name: name}
		})
		expect.Holds(t, s.Check())
		names := ""
		for _, n := range s.Nodes() {
			names += n.Name
		}
		return names + " " + made
	}
	s.MarkStale("c")
	s.MarkStale("a")
	expect.Same(t, "at first", "ac ac", update())
	before := s.Nodes()
	there["a"] = false
	for _, name := range []string{"b", "a", "gone"} {
		s.MarkStale(name)
	}
	expect.Same(t, "after changes", "bc abgone", update())
	expect.That(t, before[0].Name == "a" && before[1].Name == "c", "a list that was handed out has changed")
	expect.Same(t, "without a change", "bc ", update())
	before = s.Nodes()
	before[0], before[1] = before[1], before[0]
	expect.That(t, s.Check() != nil, "nodes in the wrong order are not noticed")
}

// TestNodeBoundTime: the pods of a namespace count on a node for 10 s in 10 minutes, all
// together, whichever of them wait.
func TestNodeBoundTime(t *testing.T) {
	b := preemption.NewNodeBound()
	now := epoch
	counts := func(uid types.UID, namespace, node string) bool {
		b.Update(&objects.Pod{Identity: objects.Identity{UID: uid, Namespace: namespace}, Spec: objects.Spec{RequiredNode: node}}, now)
		b.SetMayBeTried(uid, true, queues.NoQueue, now)
		b.Publish(func(string) resources.Vector { return resources.Vector{} })
		expect.Holds(t, b.Check())
		return b.Counts(uid)
	}
	pass := func(d time.Duration) []string {
		now = now.Add(d)
		nodes := b.Expire(now)
		b.Publish(func(string) resources.Vector { return resources.Vector{} })
		return nodes
	}
	first := counts("a", "evil", "n1")
	expect.Same(t, "the time is over at", epoch.Add(preemption.NodeBoundFor), b.Due())
	pass(9 * time.Second)
	second := counts("b", "evil", "n1")
	b.Remove("a", now)
	expect.That(t, first && second, "pods do not count although there is time left")
	expect.Same(t, "expired on", []string{"n1"}, pass(time.Second))
	expect.That(t, !b.Any(), "the pod still counts")
	expect.That(t, !counts("c", "evil", "n1"), "a new pod counts, and its namespace has used its time up")
	expect.That(t, counts("d", "good", "n1") && counts("e", "evil", "n2"),
		"the time of another namespace, or on another node, is used up")
	b.Tried("d", now)
	b.Tried("e", now)
	pass(preemption.NodeBoundEvery - 11*time.Second)
	expect.That(t, !counts("f", "evil", "n1"), "the time is granted again too early")
	pass(time.Second)
	expect.That(t, counts("f", "evil", "n1"), "the time is not granted again")
	b.Remove("f", now)
	pass(preemption.NodeBoundEvery)
	expect.That(t, b.Due().IsZero(), "times of pods that are gone are kept until %v", b.Due())
}

// TestMissesBackOff: an asker with a clear hold is tried a few times at once, then once in
// a retry interval.
func TestMissesBackOff(t *testing.T) {
	const retry = 15 * time.Second
	var p preemption.Plan
	for n, want := range []int{50, 100, 200, 400, 800, 1600, 15000, 15000} {
		tried := p.IsTried()
		wait, last := p.Miss(retry)
		expect.That(t, wait.Milliseconds() == int64(want) && last == (n == 5) && tried == (n < 6),
			"miss %d: next in %v, last: %v, tried at once: %v", n+1, wait, last, tried)
	}
}

// TestNotesOfVictims: the plan in force has the message of its victims.
func TestNotesOfVictims(t *testing.T) {
	ask := &planner.Ask{Namespace: "ns", Name: "asker"}
	victim := &planner.Pod{UID: "v", Namespace: "ns", Name: "v"}
	for name, p := range map[string]preemption.Plan{
		"ordinary":   {Decision: &planner.Decision{Ask: ask, Node: "n1", Victims: []planner.Victim{{Pod: victim}}}},
		"node-bound": {NodeBoundDecision: &daemonset.Decision{Ask: &daemonset.Ask{Ask: ask}, Node: "n1", Victims: []daemonset.Victim{{Pod: victim}}}},
	} {
		note, known := p.Note("v")
		expect.That(t, known && strings.Contains(note, "ns/asker"), "%s: %q", name, note)
		_, known = p.Note("other")
		expect.That(t, !known, "%s: it knows another pod", name)
	}
	_, known := (&preemption.Plan{}).Note("v")
	expect.That(t, !known, "no plan knows a victim")
}

func TestDecisionsHaveTheirTime(t *testing.T) {
	expect.Same(t, "decided at", epoch, preemption.DecidedAt(preemption.DecisionID("a-b", epoch)))
	expect.Same(t, "decided at", time.Time{}, preemption.DecidedAt("nothing"))
}

// TestTextsAreShort: long lists are cut, and errors are one line.
func TestTextsAreShort(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	expect.Same(t, "all", "a, b, c, d, e", preemption.Listed(names[:5]))
	expect.Same(t, "some", "a, b, c, d, e, and 2 more", preemption.Listed(names))
	expect.Same(t, "the list", "f", names[5])
	expect.Same(t, "errors", "x; y", preemption.OneLine("x\ny"))
}

// queue is a preemption queue of one leaf, with two applications.
type queue struct {
	*testing.T
	preemption.Queue
	limiter preemption.Limiter
	tree    *queues.Draft
	app     *order.App
	askers  map[types.UID]*preemption.Asker
}

func newQueue(t *testing.T) *queue {
	q := &queue{
		T: t, Queue: preemption.NewQueue(), limiter: preemption.NewLimiter(time.Millisecond, 2),
		tree: queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a guaranteed.vcore=10")), askers: map[types.UID]*preemption.Asker{},
	}
	all := order.NewIndex()
	for x := range q.tree.All() {
		all.SetQueue(x.ID, x.Settings)
		q.Order.SetQueue(x)
		if !x.IsRoot() {
			q.app = all.NewApp(x.ID, "app", epoch, order.Class{})
		}
	}
	return q
}

func (q *queue) asker(uid types.UID) *preemption.Asker {
	if q.askers[uid] == nil {
		q.askers[uid] = preemption.NewAsker(uid)
	}
	return q.askers[uid]
}

func (q *queue) enter(uid types.UID, priority int32) {
	q.Enter(q.asker(uid), q.tree, q.app, order.AskKey{Priority: priority, Created: epoch, UID: string(uid)}, queuestest.Vector("vcore=1"))
}

func (q *queue) due(what string, want time.Duration) {
	q.Helper()
	got := q.Due(&q.limiter)
	expect.That(q.T, want < 0 && got.IsZero() || want >= 0 && got.Equal(epoch.Add(want)),
		"%s: due at %v, want %v", what, got.Sub(epoch), want)
	expect.Holds(q.T, q.Check())
}

func TestQueueWithoutARecord(t *testing.T) {
	q := newQueue(t)
	q.Leave(nil)
	for _, a := range []*preemption.Asker{nil, q.asker("a")} {
		_, ok := q.When(a)
		expect.That(t, !ok && !q.Waits(a), "a pod that did not enter waits in the queue: %v", a)
	}
}

// TestQueueWaitsForTheAccount: while pods take turns, the queue is due when plans are paid
// for, and not at all while a pod is being tried.
func TestQueueWaitsForTheAccount(t *testing.T) {
	q := newQueue(t)
	q.limiter.PlanFailed(3000, 0, epoch) // paid after 2 s
	q.due("empty", -1)
	q.Arm(q.asker("a"), epoch)
	q.due("before plans are paid for", 2*time.Second)
	q.Arm(q.asker("a"), epoch.Add(time.Minute))
	q.due("after that", time.Minute)
	q.enter("b", 1)
	q.due("one is in the order", 2*time.Second)
	q.Begin("c")
	q.due("one is being tried", -1)
}

// TestQueueCheck: a due pod that enters the order is noticed.
func TestQueueCheck(t *testing.T) {
	q := newQueue(t)
	q.Arm(q.asker("a"), epoch)
	q.enter("a", 1)
	expect.That(t, q.Check() != nil, "a pod in two places is not noticed")
}

// TestPodsWithoutARecord: a pod without a record holds and held nothing. Claims up to the begin of
// the last hold are echoes.
func TestPodsWithoutARecord(t *testing.T) {
	var none *preemption.Asker
	expect.That(t, !none.HoldsNode() && none.PlacedAt().IsZero() && !none.IsEcho(epoch) &&
		!preemption.NewAsker("a").EverHeld(), "there is something where there is no record")
	ended := preemption.NewAsker("a")
	ended.LastHoldSince = epoch
	expect.That(t, ended.EverHeld() && ended.IsEcho(epoch) && !ended.IsEcho(epoch.Add(1)), "the wrong claims are echoes")
}
