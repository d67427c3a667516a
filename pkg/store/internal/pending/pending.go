package pending

import (
	"errors"
	"iter"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Pending has all state of the component. P is the caller's record of a pod, A that of an
// application, and D what the caller keeps with a PodGroup. Make one with New.
type Pending[P, A comparable, D any] struct {
	Order          *order.Index    // pods that wait for a slot
	RetryEarly     order.Sparse[A] // backing-off pods that may be tried before their back-off ends
	AheadOnly      order.Sparse[A] // other pods that found no node: only Ahead looks at them
	Window         Window[P]
	Classes        Classes
	Timers         Timers[P]
	Keys           Keys // read without the store's lock
	PodGroups      *PodGroups[P, D]
	BlockedHolders BlockedHolders[P]
	Demand         Demand[A]
	FreedUnseen    FreedUnseen
	TooEarly       TooEarly
	Transitions    state.Transitions

	returning bool      // pods are coming back, and the order is not complete
	unfilled  bool      // the window may have room that was left unfilled
	since     time.Time // when one of these was last set
	moreRoom  map[queues.ID]struct{}
}

// New returns the component without pods and queues. The window has from smallest to
// largest slots; members compares the members of a group.
func New[P, A comparable, D any](smallest, largest int, members func(a, b P) int) *Pending[P, A, D] {
	index := order.NewIndex()
	sparse := func() order.Sparse[A] {
		return order.NewSparse[A]((*queues.Queue).Committed, (*queues.Queue).CommittedKept)
	}
	return &Pending[P, A, D]{
		Order:          index,
		RetryEarly:     sparse(),
		AheadOnly:      sparse(),
		Window:         newWindow[P](smallest, largest),
		Classes:        newClasses(index, largest),
		Timers:         newTimers[P](),
		PodGroups:      NewPodGroups[P, D](members),
		BlockedHolders: NewBlockedHolders[P](),
		Demand:         NewDemand[A](),
		moreRoom:       map[queues.ID]struct{}{},
	}
}

// NoteReturn notes that a pod came back. More may follow, and until TakeFill the order is
// not complete.
func (x *Pending[P, A, D]) NoteReturn(now time.Time) { x.returning, x.since = true, now }

// NoteUnfilled notes that the window may have room that is left to the caller of TakeFill.
func (x *Pending[P, A, D]) NoteUnfilled(now time.Time) { x.unfilled, x.since = true, now }

// Returning tells whether pods came back since the last TakeFill.
func (x *Pending[P, A, D]) Returning() bool { return x.returning }

// IsFillDue tells whether TakeFill has something to take.
func (x *Pending[P, A, D]) IsFillDue() bool { return x.returning || x.unfilled }

// TakeFill tells whether the window must be filled now, and as of which time. All pods
// that returned are back.
func (x *Pending[P, A, D]) TakeFill() (now time.Time, due bool) {
	due = x.IsFillDue()
	x.returning = false
	return x.since, due
}

// Fills notes that the window is being filled.
func (x *Pending[P, A, D]) Fills() { x.unfilled = false }

// SetCapacity sets the capacity that the orders use.
func (x *Pending[P, A, D]) SetCapacity(v resources.Vector) {
	x.Order.SetCapacity(v)
	x.RetryEarly.SetCapacity(v)
	x.AheadOnly.SetCapacity(v)
}

// SetStrict sets how the orders compare queues with their guarantees.
func (x *Pending[P, A, D]) SetStrict(strict bool) {
	x.Order.SetStrict(strict)
	x.RetryEarly.SetStrict(strict)
	x.AheadOnly.SetStrict(strict)
}

// SetQueue sets the settings and the usage of a queue. It tells whether the settings are
// other ones.
func (x *Pending[P, A, D]) SetQueue(q *queues.Queue) bool {
	if x.Order.Has(q.ID, q.Settings) {
		return false
	}
	x.Order.SetQueue(q.ID, q.Settings)
	x.Order.SetUsed(q.ID, q.Committed(), q.CommittedKept())
	x.RetryEarly.SetQueue(q)
	x.AheadOnly.SetQueue(q)
	return true
}

// RemoveQueue forgets a queue.
func (x *Pending[P, A, D]) RemoveQueue(id queues.ID) {
	x.Order.RemoveQueue(id)
	x.RetryEarly.RemoveQueue(id)
	x.AheadOnly.RemoveQueue(id)
}

// SetUsed sets what an application and the queues of its leaf use.
func (x *Pending[P, A, D]) SetUsed(tree *queues.Draft, a A, ordered *order.App, leaf queues.ID, used resources.Vector) {
	x.Order.SetAppUsed(ordered, used)
	for q := range tree.Ancestors(leaf) {
		x.Order.SetUsed(q.ID, q.Committed(), q.CommittedKept())
	}
	x.RetryEarly.Tell(tree, a, leaf, used)
	x.AheadOnly.Tell(tree, a, leaf, used)
}

// SubmittedAt sets when an application was submitted.
func (x *Pending[P, A, D]) SubmittedAt(a A, ordered *order.App, submitted time.Time) {
	x.Order.SetSubmitted(ordered, submitted)
	x.RetryEarly.SubmittedAt(a, submitted)
	x.AheadOnly.SubmittedAt(a, submitted)
}

// ForgetApp forgets an application without pods.
func (x *Pending[P, A, D]) ForgetApp(a A) {
	x.RetryEarly.Forget(a)
	x.AheadOnly.Forget(a)
}

// Ahead is [order.Index.Ahead] for all pods without a slot.
func (x *Pending[P, A, D]) Ahead(p order.Path, room resources.Vector) iter.Seq[*order.Ask] {
	return func(yield func(*order.Ask) bool) {
		for _, o := range []*order.Index{x.Order, x.RetryEarly.Index, x.AheadOnly.Index} {
			for ask := range o.Ahead(p, room) {
				if !yield(ask) {
					return
				}
			}
		}
	}
}

// MoreRoom notes that a queue may have more room.
func (x *Pending[P, A, D]) MoreRoom(id queues.ID) { x.moreRoom[id] = struct{}{} }

// NoteMoreRoom notes that the queues of a leaf may have more room. Queues that refused nothing
// do not matter.
func (x *Pending[P, A, D]) NoteMoreRoom(tree *queues.Draft, leaf queues.ID) {
	for q := range tree.Ancestors(leaf) {
		if x.Order.HasBlocked(q.ID) || x.PodGroups.HasRefused(q.ID) || x.BlockedHolders.Has(q.ID) {
			x.MoreRoom(q.ID)
		}
	}
}

// TakeBlocked returns the groups of the order that are blocked by queues with more room,
// and marks the PodGroups and the holders that these queues refused.
func (x *Pending[P, A, D]) TakeBlocked(tree queues.View) []*order.AskGroup {
	var out []*order.AskGroup
	for id := range x.moreRoom {
		delete(x.moreRoom, id)
		x.PodGroups.TouchRefused(id)
		x.BlockedHolders.MoreRoom(id)
		if tree.Queue(id) != nil {
			out = append(out, x.Order.BlockedAt(id)...)
		}
	}
	return out
}

// Check verifies the parts that need nothing of the caller to compare with.
func (x *Pending[P, A, D]) Check() error {
	return errors.Join(
		x.Order.Check(), x.RetryEarly.Check(), x.AheadOnly.Check(),
		x.Transitions.Check(), x.Timers.Check(), x.BlockedHolders.Check(),
	)
}
