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
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

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
		if g.Able() != c.able || g.Complete() != c.complete || g.LacksMembers() != c.lacks || g.Missing() != c.missing {
			t.Errorf("%v: able %v, complete %v, lacks members %v, missing %d", c.in, g.Able(), g.Complete(), g.LacksMembers(), g.Missing())
		}
		expect.Same(t, fmt.Sprintf("next of %v", c.in), c.next, g.Next())
		expect.Same(t, fmt.Sprintf("%v wait for", c.in), c.code, g.Why().Code)
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

// TestGroupsWaitForRoom: a group that a queue refused is checked again when that queue has
// more room.
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
		if x.OtherIsBeingPlaced(g, now) || x.OtherIsBeingPlaced(other, now) == c.free {
			t.Errorf("%s: x waits: %v, y waits: %v", name, x.OtherIsBeingPlaced(g, now), x.OtherIsBeingPlaced(other, now))
		}
		if got := g.Admitted() == 0 && len(slices.Collect(x.All())) == 2; got == x.Due().IsZero() {
			t.Errorf("%s: the others wait until %v", name, x.Due())
		}
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
		if !g.Knows("xa", "xa", state.Admitted, holds) || g.Knows("xa", "xa", state.Queued, holds) || g.Knows("xb", "xb", state.Admitted, holds) {
			t.Error(fmt.Sprint("it knows other members than it has: ", g.Members()))
		}
	}
}
