package pending_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// TestMoreRoom checks that a blocked group of the order is looked at again when a queue
// that blocks something has more room, and only then.
func TestMoreRoom(t *testing.T) {
	x := pending.New[int, struct{}](1, 4, func(a, b int) int { return a - b })
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a\n  b"))
	for q := range tree.All() {
		expect.That(t, !x.Order.Has(q.ID, q.Settings), "queue %s is known before", q.Path)
		x.Order.SetQueue(q.ID, q.Settings)
		expect.That(t, x.Order.Has(q.ID, q.Settings), "queue %s has other settings", q.Path)
	}
	a, _ := tree.Find("root.a")
	b, _ := tree.Find("root.b")
	app := x.Order.NewApp(a.ID, "x", time.Time{}, order.Class{})
	ask := x.Order.Push(app, order.AskKey{UID: "p"}, queuestest.Vector("vcore=1"), "")
	expect.That(t, x.Window.Taken() < x.Window.Slots(), "an empty window has no slot")
	x.Order.Block(ask.Group(), queues.Verdict{At: a.ID, Reason: reasons.Brief(reasons.OverMax)})
	x.NoteMoreRoom(tree, b.ID)
	expect.That(t, len(x.TakeBlocked(tree)) == 0, "room elsewhere frees a group")
	x.NoteMoreRoom(tree, a.ID)
	got := x.TakeBlocked(tree)
	expect.That(t, len(got) == 1 && got[0] == ask.Group(), "more room for %v", got)
	expect.That(t, len(x.TakeBlocked(tree)) == 0, "it is taken twice")
	expect.Holds(t, x.Check())
}

// TestBlockedHolders checks that a holder is taken once when the queue that refuses it got more
// room, in the given order, and only while that queue refuses it.
func TestBlockedHolders(t *testing.T) {
	x := pending.NewBlockedHolders[int]()
	at := func(q queues.ID) queues.Verdict { return queues.Verdict{At: q, Reason: reasons.Brief(reasons.OverMax)} }
	take := func(want ...int) {
		t.Helper()
		expect.Same(t, "taken", want, x.Take(func(a, b int) int { return b - a }))
		expect.OK(t, x.Check())
	}
	for p := range 3 {
		x.Set(p, at(7))
	}
	x.Set(3, at(8))
	x.Set(4, at(7))
	x.Set(4, at(8))
	x.MoreRoom(9)
	take()
	x.MoreRoom(7)
	take(2, 1, 0)
	take()
	x.MoreRoom(7)
	x.Set(0, queues.Granted)
	x.Set(1, at(8))
	take(2)
	x.Remove(2)
	expect.That(t, !x.Has(7) && x.Has(8), "queue 8 refuses pods, and queue 7 none")
}

// TestClassesOfAnApplication: an application has a class as long as the class has members.
func TestClassesOfAnApplication(t *testing.T) {
	x := pending.New[int, struct{}](1, 4, func(a, b int) int { return a - b })
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a"))
	for q := range tree.All() {
		x.Order.SetQueue(q.ID, q.Settings)
	}
	a, _ := tree.Find("root.a")
	app := x.Order.NewApp(a.ID, "x", time.Time{}, order.Class{})
	var p, q *pending.Class
	x.Classes.Join(&p, app, queuestest.Vector("vcore=1"), "k", state.Queued)
	x.Classes.Join(&q, app, queuestest.Vector("vcore=1"), "k", state.Queued)
	x.Classes.Leave(&p, state.Queued)
	expect.That(t, p == nil && q != nil && x.Classes.Any(app), "the class is gone, and has a member")
	x.Classes.Leave(&q, state.Queued)
	expect.That(t, q == nil && !x.Classes.Any(app), "the class is there without members")
}

// TestDemandSum: what was counted is gone after a restart, and Check sees what is of no pod that waits.
func TestDemandSum(t *testing.T) {
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a max.vcore=3 maxapps=1"))
	leaf, _ := tree.Find("root.a")
	d, empty, app := pending.NewDemand(), pending.NewDemand(), &order.App{}
	d.Add("x")
	d.Count(tree, leaf.ID, queues.Owner{}, queuestest.Vector("vcore=1"), app, false)
	d.CountMember("m")
	expect.That(t, d.Starts(app) && d.HasMember("m"), "what was counted is not there")
	expect.That(t, d.Restart(epoch) && !d.Starts(app) && !d.HasMember("m"), "it is there after a restart")
	expect.Holds(t, d.Check(func(types.UID) bool { return true }))
	expect.Fails(t, d.Check(func(types.UID) bool { return false }), "pod x does not wait in a queue")
	empty.Count(tree, leaf.ID, queues.Owner{}, queuestest.Vector("vcore=1"), app, false)
	expect.Fails(t, empty.Check(func(types.UID) bool { return true }), "applications start, and no pod is in it")
}

// TestDemandRestarts: after an interval that grows with the pods, and only after a change;
// then each pod may need an update of PodScheduled.
func TestDemandRestarts(t *testing.T) {
	d := pending.NewDemand()
	restarts := func(at time.Duration, want bool) {
		t.Helper()
		expect.That(t, d.Restart(epoch.Add(at)) == want, "after %v: restarted %v", at, !want)
	}
	restarts(0, false)
	d.Add("b")
	d.Add("a")
	restarts(0, true)
	expect.Same(t, "to check", []types.UID{"a", "b"}, d.ToCheck())
	expect.Same(t, "in the demand", []types.UID{"a", "b"}, d.Pods())
	restarts(time.Hour, false)
	d.Changed()
	restarts(99*time.Millisecond, false)
	restarts(100*time.Millisecond, true)
	d.Checked("a")
	d.Recheck("c") // a pod that an earlier process wrote to
	expect.That(t, d.Remove("b") && !d.Remove("b") && !d.Has("b") && d.Has("a"),
		"b is there, or a is not")
	expect.Same(t, "to check", []types.UID{"c"}, d.ToCheck())
	expect.That(t, !d.Remove("c") && len(d.ToCheck()) == 0,
		"a pod that is gone is to be checked: %v", d.ToCheck())
	restarts(200*time.Millisecond, true)
	add := func(from, to int) {
		for i := range to - from {
			d.Add(types.UID(fmt.Sprint(from + i)))
		}
	}
	add(1, 1000) // and a
	restarts(599*time.Millisecond, false)
	restarts(600*time.Millisecond, true)
	add(1000, 50_000)
	restarts(4599*time.Millisecond, false)
	restarts(4600*time.Millisecond, true)
}

var epoch = time.Unix(1_700_000_000, 0)

// TestFreedUnseen: pods are brought back at most once a second for all pods that freed room
// unseen. A standby, which only adds such pods, forgets them after five minutes.
func TestFreedUnseen(t *testing.T) {
	var l pending.FreedUnseen
	expect.That(t, !l.Tick(epoch) && l.Due().IsZero(), "no room was freed, and pods are brought back")
	l.Add(pending.FreedPod{UID: "a", When: epoch})
	expect.That(t, l.Tick(epoch) && !l.Tick(epoch.Add(time.Hour)), "pods are brought back once, at once")
	l.Add(pending.FreedPod{UID: "b", When: epoch.Add(time.Second)})
	expect.That(t, !l.Tick(epoch.Add(time.Second-1)) && l.Tick(epoch.Add(time.Second)),
		"pods are brought back again after a second")
	l.Add(pending.FreedPod{UID: "c", When: epoch.Add(5 * time.Minute)})
	seen := epoch.Add(time.Second)
	l.Vanished([]pending.FreedPod{ // each differs from b in one: the node, the time, the pod
		{UID: "b", Node: "n2", When: seen}, {UID: "b", When: epoch}, {UID: "x", When: seen},
	})
	left := l.Pods(epoch)
	expect.That(t, len(left) == 2 && left[0].UID == "b" && left[1].UID == "c", "left: %v", left)
}

// TestTooEarly: a pod is remembered once, and for a minute at least.
func TestTooEarly(t *testing.T) {
	var e pending.TooEarly
	e.Note("a", epoch)
	e.Note("b", epoch.Add(time.Minute))
	expect.That(t, e.Take("a") && !e.Take("a"), "a is remembered once")
	e.Note("c", epoch.Add(2*time.Minute))
	e.Note("d", epoch.Add(3*time.Minute))
	expect.That(t, !e.Take("b") && e.Take("c") && e.Take("d"),
		"b is forgotten after two minutes, c and d are not")
}

type (
	testGroup  = pending.PodGroup[string, int]
	testGroups = pending.PodGroups[string, int]
)

// newGroup returns a group of its own with members a, b, ... in the given states.
func newGroup(x *testGroups, name string, minMember int, in ...state.State) *testGroup {
	g := x.Get(pending.PodGroupName{Namespace: "ns", Name: name})
	x.SetMin(g, minMember)
	for i, s := range in {
		pod := name + string(rune('a'+i))
		x.Set(g, types.UID(pod), pod, s, false)
	}
	return g
}

func names(groups []*testGroup) []string {
	var out []string
	for _, g := range groups {
		out = append(out, g.Name().Name)
	}
	return out
}

// TestGroupCountsMembers: which members count as placed, as coming, and as able to go on.
func TestGroupCountsMembers(t *testing.T) {
	for _, c := range []struct {
		in                    []state.State
		holder                int // number of the member that holds a node; -1 for none
		able, complete, lacks bool
		missing               int
		next                  []string
		code                  reasons.Code
	}{
		{[]state.State{state.Queued, state.GroupBlocked}, -1, false, false, true, 3, []string{"xa", "xb"}, reasons.PodGroupIncomplete},
		{[]state.State{state.Queued, state.GroupBlocked, state.Queued, state.Queued}, -1, true, false, true, 3, []string{"xa", "xb", "xc"}, reasons.InOrder},
		{[]state.State{state.Admitted, state.Scheduling, state.Unschedulable}, -1, false, false, true, 1, nil, reasons.PodGroupIncomplete},
		{[]state.State{state.Admitted, state.Scheduling, state.Unschedulable}, 2, true, false, false, 0, nil, reasons.InOrder},
		{[]state.State{state.Admitted, state.Assumed, state.Queued}, 0, true, false, true, 1, []string{"xc"}, reasons.InOrder},
		{[]state.State{state.Assumed, state.Bound, state.Bound, state.BackingOff}, -1, true, true, false, 0, nil, reasons.InOrder},
	} {
		x := pending.NewPodGroups[string, int](cmp.Compare[string])
		g := newGroup(x, "x", 3, c.in...)
		if c.holder >= 0 {
			uid := types.UID("x" + string(rune('a'+c.holder)))
			x.Set(g, uid, string(uid), c.in[c.holder], true)
		}
		want := []any{c.able, c.complete, c.lacks, c.missing, c.next, c.code}
		got := []any{g.Able(), g.Complete(), g.LacksMembers(), g.Missing(), g.Next(), g.Why().Code}
		expect.Same(t, fmt.Sprintf("%v: able, complete, lacks members, missing, next, why", c.in), want, got)
		expect.Holds(t, x.Check(false))
	}
}

// TestGroupsAreTouched: a change that may let members go on, or ends their chance to,
// marks the group, and no other change does.
func TestGroupsAreTouched(t *testing.T) {
	x := pending.NewPodGroups[string, int](cmp.Compare[string])
	g := newGroup(x, "x", 2, state.GroupBlocked)
	touched := func(what string, want ...string) {
		t.Helper()
		expect.Same(t, what+" to check", want, names(x.TakeTouched(time.Minute, epoch)))
	}
	touched("a new minMember", "x")
	x.Set(g, "xa", "xa", state.GroupBlocked, false)
	touched("no change")
	x.Set(g, "xb", "xb", state.GroupBlocked, false)
	touched("enough members", "x")
	x.Set(g, "xb", "xb", state.Queued, false)
	touched("one of them leads")
	x.Set(g, "xb", "xb", state.Unschedulable, false)
	touched("it found no node", "x")
	x.Set(g, "xb", "xb", state.Unschedulable, true)
	touched("it holds a node", "x")
	x.Leave(g, "xb")
	touched("it is gone", "x")
	x.TouchBlocked()
	touched("another configuration", "x")
	x.Leave(g, "xa")
	x.SetMin(g, 0)
	touched("it is forgotten")
	expect.Same(t, "groups that are left", 0, len(slices.Collect(x.All())))
	expect.Holds(t, x.Check(true))
}

// TestGroupsWaitForRoom: a group that a queue refused is checked again when that queue has more room.
func TestGroupsWaitForRoom(t *testing.T) {
	x := pending.NewPodGroups[string, int](cmp.Compare[string])
	g := newGroup(x, "x", 1, state.GroupBlocked)
	x.TakeTouched(time.Minute, epoch)
	expect.Fails(t, x.Check(true), "PodGroup ns/x: it can start, and nothing brings its pods back")
	x.Refuse(g, queues.Verdict{At: 6, Reason: reasons.Brief(reasons.OverMax)})
	x.Refuse(g, queues.Verdict{At: 7, Reason: reasons.Brief(reasons.OverMax)})
	expect.That(t, g.Why().Code == reasons.OverMax && !x.HasRefused(6) && x.HasRefused(7),
		"it waits for %s, refused at 6: %v, at 7: %v", g.Why().Code, x.HasRefused(6), x.HasRefused(7))
	expect.Holds(t, x.Check(true))
	x.TouchRefused(6)
	expect.That(t, len(x.Touched()) == 0, "another queue has more room, and it is checked")
	x.TouchRefused(7)
	expect.That(t, len(x.Touched()) == 1, "the queue has more room, and it is not checked")
	x.Reopen(g)
	expect.That(t, !x.HasRefused(7) && g.Why().Code == reasons.InOrder, "it is refused after the check")
}

// TestOneGroupIsPlacedAtATime: others wait until it has started, its lease ended, or a
// result is not expected soon.
func TestOneGroupIsPlacedAtATime(t *testing.T) {
	for name, c := range map[string]struct {
		then func(x *testGroups, g *testGroup)
		at   time.Duration
		free bool
	}{
		"its members are tried": {then: func(*testGroups, *testGroup) {}},
		"its lease ended":       {then: func(*testGroups, *testGroup) {}, at: time.Minute, free: true},
		"it has a place for one": {then: func(x *testGroups, g *testGroup) {
			x.Set(g, "xa", "xa", state.Assumed, false)
			x.Set(g, "xb", "xb", state.Queued, false)
		}},
		"one found no node": {then: func(x *testGroups, g *testGroup) {
			x.Set(g, "xa", "xa", state.BackingOff, false)
			x.Set(g, "xb", "xb", state.Unschedulable, false)
		}, free: true},
		"one waits for victims": {then: func(x *testGroups, g *testGroup) {
			x.Set(g, "xa", "xa", state.Assumed, false)
			x.Set(g, "xb", "xb", state.Unschedulable, true)
		}, free: true},
		"it has started": {then: func(x *testGroups, g *testGroup) {
			x.Set(g, "xa", "xa", state.Assumed, false)
			x.Set(g, "xb", "xb", state.Assumed, false)
		}, free: true},
		"a member is gone": {then: func(x *testGroups, g *testGroup) { x.Leave(g, "xb") }, free: true},
		"it is gone":       {then: func(x *testGroups, g *testGroup) { x.Leave(g, "xa"); x.Leave(g, "xb"); x.SetMin(g, 0) }, free: true},
	} {
		x := pending.NewPodGroups[string, int](cmp.Compare[string])
		g, other := newGroup(x, "x", 2, state.Admitted, state.Scheduling), newGroup(x, "y", 1, state.GroupBlocked)
		x.TakeTouched(time.Minute, epoch)
		x.Place(g, epoch.Add(time.Minute))
		x.Wait(other)
		expect.Holds(t, x.Check(true))
		c.then(x, g)
		now := epoch.Add(c.at)
		wait := []bool{x.OtherIsBeingPlaced(g, now), x.OtherIsBeingPlaced(other, now)}
		expect.Same(t, name+": x and y wait", []bool{false, !c.free}, wait)
		got := g.Admitted() == 0 && len(slices.Collect(x.All())) == 2
		expect.That(t, got != x.Due().IsZero(), "%s: the others wait until %v", name, x.Due())
	}
}

// TestWaitingGroupsFollow: groups that wait for another one are checked once it is done.
func TestWaitingGroupsFollow(t *testing.T) {
	x := pending.NewPodGroups[string, int](cmp.Compare[string])
	g, other := newGroup(x, "x", 1, state.Admitted), newGroup(x, "y", 1, state.GroupBlocked)
	x.TakeTouched(time.Minute, epoch)
	x.Place(g, epoch)
	x.Wait(other)
	expect.Same(t, "to check while x is placed", []string(nil), names(x.TakeTouched(time.Minute, epoch)))
	x.Set(g, "xa", "xa", state.Unschedulable, false)
	expect.Same(t, "to check", []string{"x", "y"}, names(x.TakeTouched(time.Minute, epoch)))
	expect.Fails(t, x.Check(true), "PodGroup ns/y: it waits for another one, and there is none")
	x.Wait(other)
	expect.Holds(t, x.Check(false))
}

// TestGroupsCheckLetThrough: members of a group that cannot start have no slot, except
// those that hold a node.
func TestGroupsCheckLetThrough(t *testing.T) {
	for _, holds := range []bool{false, true} {
		x := pending.NewPodGroups[string, int](cmp.Compare[string])
		g := newGroup(x, "x", 3, state.Admitted)
		x.Set(g, "xa", "xa", state.Admitted, holds)
		x.TakeTouched(time.Minute, epoch)
		if holds {
			expect.Holds(t, x.Check(true))
		} else {
			expect.Fails(t, x.Check(true), "it cannot start, and 1 pods are let through")
		}
		expect.That(t, g.Knows("xa", "xa", state.Admitted, holds), "it does not know a member: %v", g.Members())
		expect.That(t, !g.Knows("xa", "xa", state.Queued, holds), "it knows a member in another state: %v", g.Members())
		expect.That(t, !g.Knows("xb", "xb", state.Admitted, holds), "it knows another pod: %v", g.Members())
	}
}
