package pending_test

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
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
