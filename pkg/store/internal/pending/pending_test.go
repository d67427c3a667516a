package pending_test

import (
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
	x := pending.New[int, int, struct{}](1, 4, func(a, b int) int { return a - b })
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a\n  b"))
	for q := range tree.All() {
		expect.That(t, x.SetQueue(q) && !x.SetQueue(q),
			"queue %s: other settings only the first time", q.Path)
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
	x := pending.New[int, int, struct{}](1, 4, func(a, b int) int { return a - b })
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a"))
	for q := range tree.All() {
		x.SetQueue(q)
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

// TestDemandSum: what was counted is gone after a restart, and Check sees what is of no pod that
// waits.
func TestDemandSum(t *testing.T) {
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a max.vcore=3 maxapps=1"))
	leaf, _ := tree.Find("root.a")
	d, empty := pending.NewDemand[string](), pending.NewDemand[string]()
	d.Add("x")
	d.Count(tree, leaf.ID, queues.Owner{}, queuestest.Vector("vcore=1"), "x", false)
	d.CountMember("m")
	expect.That(t, d.Starts("x") && d.HasMember("m"), "what was counted is not there")
	expect.That(t, d.Restart(epoch) && !d.Starts("x") && !d.HasMember("m"), "it is there after a restart")
	expect.Holds(t, d.Check(func(types.UID) bool { return true }))
	expect.Fails(t, d.Check(func(types.UID) bool { return false }), "pod x does not wait in a queue")
	empty.Count(tree, leaf.ID, queues.Owner{}, queuestest.Vector("vcore=1"), "x", false)
	expect.Fails(t, empty.Check(func(types.UID) bool { return true }), "applications start, and no pod is in it")
}

// TestDemandRestarts: after an interval that grows with the pods, and only after a change;
// then each pod may need an update of PodScheduled.
func TestDemandRestarts(t *testing.T) {
	d := pending.NewDemand[string]()
	restarts := func(at time.Duration, want bool) {
		t.Helper()
		expect.That(t, d.Restart(epoch.Add(at)) == want, "after %v: restarted %v", at, !want)
	}
	restarts(0, false)
	d.Add("b")
	d.Add("a")
	restarts(0, true)
	if got := d.ToCheck(); !slices.Equal(got, []types.UID{"a", "b"}) || !slices.Equal(d.Pods(), got) {
		t.Errorf("%v to check, %v in the demand", got, d.Pods())
	}
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
