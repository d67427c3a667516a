package preemption_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
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
	q.Enter(q.asker(uid), q.tree, "app", order.AppInfo{Leaf: q.leaf, Name: "app", Submitted: epoch}, preemption.Ask{
		Key: order.AskKey{Priority: priority, Created: epoch, UID: string(uid)}, Request: queuestest.Vector("vcore=1"),
	})
}

func (q *queue) due(what string, want time.Duration) {
	q.Helper()
	got := q.Due(&q.limiter)
	if want < 0 && !got.IsZero() || want >= 0 && !got.Equal(epoch.Add(want)) {
		q.Errorf("%s: due at %v, want %v", what, got.Sub(epoch), want)
	}
	checked(q.T, q)
}

// TestQueueTakesTurns: pods become due by time, then the first of the order is tried, one
// at a time.
func TestQueueTakesTurns(t *testing.T) {
	q := newQueue(t)
	q.due("empty", -1)
	q.Arm(q.asker("b"), epoch.Add(2*time.Second))
	q.Arm(q.asker("a"), epoch.Add(2*time.Second))
	q.Arm(q.asker("c"), epoch.Add(time.Second))
	q.due("three are armed", time.Second)
	if _, ok := q.TakeDue(epoch); ok {
		t.Error("a pod is due early")
	}
	var taken []types.UID
	for uid, ok := q.TakeDue(epoch.Add(2 * time.Second)); ok; uid, ok = q.TakeDue(epoch.Add(2 * time.Second)) {
		taken = append(taken, uid)
	}
	if !slices.Equal(taken, []types.UID{"c", "a", "b"}) {
		t.Errorf("due are %v", taken)
	}
	q.enter("a", 1)
	q.enter("b", 2)
	q.enter("c", 2)
	if first, ok := q.First(); !ok || first != "b" {
		t.Errorf("first is %s", first)
	}
	q.LeaveOrder(q.asker("b"))
	q.Begin("b")
	if first, ok := q.First(); ok || q.Current() != "b" {
		t.Errorf("%s is tried beside %s", first, q.Current())
	}
	q.End("other")
	q.End("b")
	if first, ok := q.First(); !ok || first != "c" {
		t.Errorf("then comes %s", first)
	}
	q.Arm(q.asker("c"), epoch) // leaves the order
	if at, ok := q.When(q.asker("c")); !ok || at != epoch || !q.Waits(q.asker("c")) {
		t.Errorf("armed at %v", at)
	}
	q.Leave(q.asker("c"))
	q.Leave(q.asker("a"))
	q.Leave(nil)
	if _, ok := q.First(); ok || q.Waits(q.asker("a")) || q.Waits(nil) {
		t.Error("a pod that left is there")
	}
	if _, ok := q.When(nil); ok {
		t.Error("no pod is due")
	}
	q.due("all left", -1)
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
	if q.Check() == nil {
		t.Error("a pod in two places is not noticed")
	}
}

// TestAskerIsEmpty: a record is dropped only if nothing of it is needed. A pod without a
// record holds nothing.
func TestAskerIsEmpty(t *testing.T) {
	var none *preemption.Asker
	if none.Holds() || !none.PlacedAt().IsZero() || none.IsEcho(epoch) || !preemption.NewAsker("a").IsEmpty() {
		t.Error("there is something where there is no record")
	}
	for name, set := range map[string]func(*preemption.Asker){
		"holds":  func(a *preemption.Asker) { a.SetHolds(true) },
		"lost":   func(a *preemption.Asker) { a.Losses.Count = 1 },
		"placed": func(a *preemption.Asker) { a.Losses.PlacedAt = epoch },
		"sweep":  func(a *preemption.Asker) { a.Sweep = preemption.Sweep{"n"} },
		"ended":  func(a *preemption.Asker) { a.LastHoldSince = epoch },
		"node":   func(a *preemption.Asker) { a.SawNode = 1 },
		"quota":  func(a *preemption.Asker) { a.OverQuota = true },
	} {
		a := preemption.NewAsker("a")
		if set(a); a.IsEmpty() {
			t.Errorf("%s: it is empty", name)
		}
	}
	ended := preemption.NewAsker("a")
	ended.LastHoldSince = epoch
	if !ended.IsEcho(epoch) || ended.IsEcho(epoch.Add(1)) {
		t.Error("the wrong claims are echoes")
	}
}

// TestNodeBoundAwaits: pods that wait for a change of their node are returned once for each
// change, and go on waiting.
func TestNodeBoundAwaits(t *testing.T) {
	b := preemption.NewNodeBound()
	take := func(what string, want ...types.UID) {
		t.Helper()
		if got := b.TakeChanged(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		b.Publish(func(string) resources.Vector { return resources.Vector{} })
		checked(t, b)
	}
	b.Await("unknown", true)
	for uid, node := range map[types.UID]string{"b": "n1", "a": "n1", "c": "n2"} {
		b.Update(&objects.Pod{Identity: objects.Identity{UID: uid}, Spec: objects.Spec{RequiredNode: node}}, epoch)
	}
	b.Change("n1")
	take("nothing waits")
	b.Await("a", true)
	b.Await("b", true)
	b.Await("c", true)
	take("nothing changed")
	b.Change("n2")
	b.Change("n1")
	b.Change("n2")
	take("two nodes", "a", "b", "c")
	take("taken")
	b.Change("n1")
	if b.Await("b", false); b.Awaits("b") || !b.Awaits("a") {
		t.Error("the wrong pods wait")
	}
	take("one waits no more", "a")
	b.Change("n2")
	b.Remove("c", epoch)
	take("one is gone")
	if left := slices.Sorted(b.All()); !slices.Equal(left, []types.UID{"a", "b"}) {
		t.Errorf("%v are left", left)
	}
}
