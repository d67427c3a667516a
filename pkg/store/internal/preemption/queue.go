package preemption

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Queue decides when stuck pods get a plan although no event would bring them back (P1,
// P2):
//
//	           due: the delay ended,         first of the order, and
//	           or the retry interval         no other pod is being tried
//	armed ───────────────────────────► in order ─────────────────────► admitted
//	  ▲  ▲                                │                               │ PostFilter
//	  │  └────────────────────────────────┘                               │
//	  │    no longer stuck, or law 4 is not met                           │
//	  └───────────────────────────────────────────────────────────────────┘
//	       refused: after the retry interval, or a watched queue or node changed
//
// The order is the hierarchical one on the used and expected amounts of queues. One pod
// is tried at a time, because each plan changes the order; the window does not limit it.
// A pod with a hold is not armed.
type Queue struct {
	Order   order.Sparse
	due     ranking.Heap[*Asker]
	current types.UID // the pod in the current cycle; empty for none
}

// NewQueue returns a queue without pods.
func NewQueue() Queue {
	return Queue{Order: order.NewSparse((*queues.Queue).Expected, (*queues.Queue).Has), due: ranking.New(sooner)}
}

// Arm schedules a check of a pod, in the place of an earlier one.
func (q *Queue) Arm(a *Asker, at time.Time) {
	q.LeaveOrder(a)
	a.when = at
	q.due.Update(a, true)
}

// Enter puts a pod into the order.
func (q *Queue) Enter(a *Asker, tree *queues.Draft, app *order.App, key order.AskKey, request resources.Vector) {
	a.ask = q.Order.Push(tree, app, key, request)
}

// Leave takes a pod out of the queue. It may be nil or not in it.
func (q *Queue) Leave(a *Asker) {
	if a != nil {
		q.due.Update(a, false)
		q.LeaveOrder(a)
	}
}

// LeaveOrder takes a pod out of the order, if it is there.
func (q *Queue) LeaveOrder(a *Asker) {
	if a.ask != nil {
		q.Order.Remove(a.ask)
		a.ask = nil
	}
}

// Waits tells whether a pod is in the queue.
func (q *Queue) Waits(a *Asker) bool { return a != nil && (a.at != ranking.Outside || a.ask != nil) }

// When is when a pod is checked; false for a pod that is in the order or not in the queue.
func (q *Queue) When(a *Asker) (time.Time, bool) {
	if a == nil || a.at == ranking.Outside {
		return time.Time{}, false
	}
	return a.when, true
}

// TakeDue takes out the first pod that is due.
func (q *Queue) TakeDue(now time.Time) (types.UID, bool) {
	a, ok := q.due.First()
	if !ok || a.when.After(now) {
		return "", false
	}
	q.due.Update(a, false)
	return a.UID, true
}

// First returns the first pod of the order, unless another one is being tried.
func (q *Queue) First() (types.UID, bool) {
	if q.current != "" {
		return "", false
	}
	ask, ok := q.Order.Next()
	if !ok {
		return "", false
	}
	return types.UID(ask.UID()), true
}

// Begin notes that a pod is being tried.
func (q *Queue) Begin(uid types.UID) { q.current = uid }

// End notes that the cycle of a pod is over.
func (q *Queue) End(uid types.UID) {
	if q.current == uid {
		q.current = ""
	}
}

// Current is the pod that is being tried; empty for none.
func (q *Queue) Current() types.UID { return q.current }

// Due is when a pod is checked or tried next; zero for never. While a pod is being
// tried, pods that take turns wait for the end of its cycle.
func (q *Queue) Due(l *Limiter) time.Time {
	first, ok := q.due.First()
	switch {
	case !l.TakesTurns() && ok:
		return first.when
	case !l.TakesTurns(), q.current != "":
		return time.Time{}
	case q.Order.Eligible() > 0:
		return l.paid
	case ok:
		return Latest(first.when, l.paid)
	}
	return time.Time{}
}

// Check verifies the heap, the order, and that no due pod is in the order.
func (q *Queue) Check() error {
	for _, a := range q.due.Items() {
		if a.ask != nil {
			return fmt.Errorf("preemption queue: pod %s is due, and in the order", a.UID)
		}
	}
	return errors.Join(q.due.Check(), q.Order.Check())
}
