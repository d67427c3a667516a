package preemption_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// queue is a preemption queue of one leaf, with two applications.
type queue struct {
	*testing.T
	preemption.Queue[string]
	limiter preemption.Limiter
	tree    *queues.Draft
	leaf    queues.ID
	askers  map[types.UID]*preemption.Asker
}

func newQueue(t *testing.T) *queue {
	q := &queue{
		T: t, Queue: preemption.NewQueue[string](), limiter: preemption.NewLimiter(time.Millisecond, 2),
		tree: queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a guaranteed.vcore=10")), askers: map[types.UID]*preemption.Asker{},
	}
	for x := range q.tree.All() {
		q.Order.SetQueue(x)
		if !x.IsRoot() {
			q.leaf = x.ID
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
	q.Enter(q.asker(uid), q.tree, "app", order.AppInfo{Leaf: q.leaf, Name: "app", Submitted: epoch},
		order.AskKey{Priority: priority, Created: epoch, UID: string(uid)}, queuestest.Vector("vcore=1"))
}

func (q *queue) due(what string, want time.Duration) {
	q.Helper()
	got := q.Due(&q.limiter)
	if want < 0 && !got.IsZero() || want >= 0 && !got.Equal(epoch.Add(want)) {
		q.Errorf("%s: due at %v, want %v", what, got.Sub(epoch), want)
	}
	checked(q.T, q)
}

// TestQueueWithoutARecord: a pod without a record is not in the queue.
func TestQueueWithoutARecord(t *testing.T) {
	q := newQueue(t)
	q.Leave(nil)
	if _, ok := q.When(nil); ok || q.Waits(nil) {
		t.Error("it waits in the queue")
	}
	if _, ok := q.When(q.asker("a")); ok || q.Waits(q.asker("a")) {
		t.Error("a pod that did not enter waits in the queue")
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

// TestAskerIsEmpty: a record is dropped only if nothing of it is needed. A pod without a
// record holds nothing.
func TestAskerIsEmpty(t *testing.T) {
	var none *preemption.Asker
	expect.That(t, !none.HoldsNode() && none.PlacedAt().IsZero() && !none.IsEcho(epoch) &&
		preemption.NewAsker("a").IsEmpty(), "there is something where there is no record")
	for name, set := range map[string]func(*preemption.Asker){
		"holds":  func(a *preemption.Asker) { a.SetHoldsNode(true) },
		"lost":   func(a *preemption.Asker) { a.Losses.Count = 1 },
		"undone": func(a *preemption.Asker) { a.Losses.Undone = 1 },
		"placed": func(a *preemption.Asker) { a.Losses.PlacedAt = epoch },
		"sweep":  func(a *preemption.Asker) { a.Sweep = preemption.Sweep{"n"} },
		"ended":  func(a *preemption.Asker) { a.LastHoldSince = epoch },
		"node":   func(a *preemption.Asker) { a.SawNode = 1 },
		"quota":  func(a *preemption.Asker) { a.RefusalEndsCycle = true },
	} {
		a := preemption.NewAsker("a")
		set(a)
		expect.That(t, !a.IsEmpty(), "%s: it is empty", name)
	}
	ended := preemption.NewAsker("a")
	ended.LastHoldSince = epoch
	expect.That(t, ended.IsEcho(epoch) && !ended.IsEcho(epoch.Add(1)), "the wrong claims are echoes")
}
