package pending_test

import (
	"iter"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// member is a pod of a class.
type member struct {
	class *pending.Class
	in    state.State
}

func all(members ...*member) iter.Seq2[*pending.Class, state.State] {
	return func(yield func(*pending.Class, state.State) bool) {
		for _, m := range members {
			if !yield(m.class, m.in) {
				return
			}
		}
	}
}

// TestClasses checks that a class which failed is out of the order until its
// unschedulable member comes back, and that Check finds members that are not counted.
func TestClasses(t *testing.T) {
	x := pending.New[int, int, struct{}](1, 4, func(a, b int) int { return a - b })
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a"))
	for q := range tree.All() {
		x.SetQueue(q)
	}
	a, _ := tree.Find("root.a")
	app := x.Order.NewApp(a.ID, "x", time.Time{}, order.Class{})
	one := queuestest.Vector("vcore=1")
	p, q := &member{in: state.Scheduling}, &member{in: state.Queued}
	for _, m := range []*member{p, q} {
		x.Classes.Join(&m.class, app, one, "k", m.in)
	}
	x.Order.PushKind(app, order.AskKey{UID: "q"}, one, "k")
	if p.class == nil || p.class != q.class || !x.Classes.Any(app) || !x.Classes.Limit.Full() {
		t.Error("equal pods have no common class, or an admitted one is not counted")
	}
	move := func(m *member, to state.State) {
		x.Classes.Move(m.class, m.in, to)
		m.in = to
	}
	move(p, state.Unschedulable)
	x.Classes.Fail(p.class, 0)
	if _, ok := x.Order.Next(); ok || !q.class.Failed() {
		t.Error("a pod of a failed class is in the order")
	}
	expect.Holds(t, x.Classes.Check(all(p, q)))
	move(p, state.Queued)
	if _, ok := x.Order.Next(); !ok || q.class.Failed() || x.Classes.Limit.Reopened() != 1 {
		t.Error("the class is still closed after its member came back")
	}
	x.Classes.Fail(p.class, 0)
	if x.Classes.Check(all(p, q)) == nil {
		t.Error("Check does not find a failed class that the scheduler has no pod of")
	}
	move(p, state.Unschedulable)
	if x.Classes.Check(all(p)) == nil || x.Classes.Check(all(p, q, q)) == nil || x.Classes.Check(all(&member{p.class, state.Queued}, q)) == nil {
		t.Error("Check does not find wrong counts")
	}
	x.Classes.Leave(&p.class, p.in)
	x.Classes.Leave(&q.class, q.in)
	if p.class != nil || q.class.Failed() || x.Classes.Any(app) || x.Classes.Check(all(p, q)) != nil {
		t.Error("the class is there without members")
	}
}
