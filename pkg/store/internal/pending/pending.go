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

// Pending has all state of the component. P is the caller's record of a pod, and D what
// the caller keeps with a PodGroup. Make one with New.
type Pending[P comparable, D any] struct {
	Order          *order.Index // pods that wait for a slot
	RetryEarly     order.Sparse // backing-off pods that may be tried before their back-off ends
	AheadOnly      order.Sparse // other pods that found no node: only Ahead looks at them
	Window         Window[P]
	Classes        Classes
	Timers         Timers[P]
	Keys           Keys // read without the store's lock
	PodGroups      *PodGroups[P, D]
	BlockedHolders BlockedHolders[P]
	Demand         Demand
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
func New[P comparable, D any](smallest, largest int, members func(a, b P) int) *Pending[P, D] {
	index := order.NewIndex()
	sparse := func() order.Sparse {
		return order.NewSparse((*queues.Queue).Committed, (*queues.Queue).CommittedKept)
	}
	return &Pending[P, D]{
		Order:          index,
		RetryEarly:     sparse(),
		AheadOnly:      sparse(),
		Window:         newWindow[P](smallest, largest),
		Classes:        newClasses(index, largest),
		Timers:         newTimers[P](),
		PodGroups:      NewPodGroups[P, D](members),
		BlockedHolders: NewBlockedHolders[P](),
		Demand:         NewDemand(),
		moreRoom:       map[queues.ID]struct{}{},
	}
}

// NoteReturn notes that a pod came back. More may follow, and until TakeFill the order is
// not complete.
func (x *Pending[P, D]) NoteReturn(now time.Time) { x.returning, x.since = true, now }

// NoteUnfilled notes that the window may have room that is left to the caller of TakeFill.
func (x *Pending[P, D]) NoteUnfilled(now time.Time) { x.unfilled, x.since = true, now }

// Returning tells whether pods came back since the last TakeFill.
func (x *Pending[P, D]) Returning() bool { return x.returning }

// IsFillDue tells whether TakeFill has something to take.
func (x *Pending[P, D]) IsFillDue() bool { return x.returning || x.unfilled }

// TakeFill tells whether the window must be filled now, and as of which time. All pods
// that returned are back.
func (x *Pending[P, D]) TakeFill() (now time.Time, due bool) {
	due = x.IsFillDue()
	x.returning = false
	return x.since, due
}

// Fills notes that the window is being filled.
func (x *Pending[P, D]) Fills() { x.unfilled = false }

// Ahead is [order.Index.Ahead] for all pods without a slot.
func (x *Pending[P, D]) Ahead(p order.Path, room resources.Vector) iter.Seq[*order.Ask] {
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
func (x *Pending[P, D]) MoreRoom(id queues.ID) { x.moreRoom[id] = struct{}{} }

// NoteMoreRoom notes that the queues of a leaf may have more room. Queues that refused nothing
// do not matter.
func (x *Pending[P, D]) NoteMoreRoom(tree *queues.Draft, leaf queues.ID) {
	for q := range tree.Ancestors(leaf) {
		if x.Order.HasBlocked(q.ID) || x.PodGroups.HasRefused(q.ID) || x.BlockedHolders.Has(q.ID) {
			x.MoreRoom(q.ID)
		}
	}
}

// TakeBlocked returns the groups of the order that are blocked by queues with more room,
// and marks the PodGroups and the holders that these queues refused.
func (x *Pending[P, D]) TakeBlocked(tree queues.View) []*order.AskGroup {
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
func (x *Pending[P, D]) Check() error {
	return errors.Join(
		x.Order.Check(), x.RetryEarly.Check(), x.AheadOnly.Check(),
		x.Transitions.Check(), x.Timers.Check(), x.BlockedHolders.Check(),
	)
}
