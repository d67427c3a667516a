package pending_test

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

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
