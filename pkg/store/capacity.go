package store

import (
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A queue without a guarantee shares in the capacity of all nodes, so a node that comes
// or goes changes the shares of all queues. With 5,000 queues the update takes
// milliseconds under the lock, and nodes often come by the hundred. So the orders get
// small changes of the capacity late: the value they use is the same for all queues, and
// off by at most a sixteenth for at most capacityEvery. All other code has the exact
// value at once. A cluster that grows from one node to 5,000 updates the orders about a
// hundred times.
//
//	setCapacity, updated long ago     setCapacity, updated just now and a small change
//	  ┌───────┐    ┌────────────────────────────────────────────┐    ┌───────┐
//	  │       ▼    │                                            ▼    │       ▼
//	  └─────── told ◄──────────────────────────────────────────── due ───────┘
//	                  tickCapacity, at told + capacityEvery,          setCapacity,
//	                  or setCapacity, no small change                 still small
//
// Assumptions: before Start, the order is not read; the caller calls Tick at the time
// that [Store.NextDeadline] returns.
type capacity struct {
	sum    resources.Vector // of all nodes
	told   resources.Vector // the value that the orders use
	toldAt time.Time        // when the orders were last updated
	due    time.Time        // when their next update is due; zero if they are up to date
}

const (
	// capacityEvery is how long the orders may lack small changes of the capacity.
	capacityEvery = time.Second
	// capacityPart: a change of at most 1/capacityPart of the orders' value is small. A
	// fixed delay alone would be wrong in a small cluster: in its first second the orders
	// would lack most of the capacity, serve queues in a wrong order, and queues below
	// their guarantee would start preemption.
	capacityPart = 16
)

// setCapacity sets the capacity of all nodes.
func (s *Store) setCapacity(sum resources.Vector, now time.Time) {
	s.capacity.sum = sum
	s.draft.SetCapacity(sum)
	if next := s.capacity.toldAt.Add(capacityEvery); s.started && now.Before(next) && s.capacity.near() {
		s.capacity.due = next
		return
	}
	s.tellCapacity(now)
}

// near tells whether the orders' value is close to the capacity in every type.
func (c *capacity) near() bool {
	for _, changed := range []resources.Vector{c.sum.Sub(c.told), c.told.Sub(c.sum)} {
		for name, amount := range changed.All() {
			if amount > c.told.Get(name)/capacityPart {
				return false
			}
		}
	}
	return true
}

// tellCapacity updates the orders.
func (s *Store) tellCapacity(now time.Time) {
	s.capacity.told, s.capacity.toldAt, s.capacity.due = s.capacity.sum, now, time.Time{}
	s.index.SetCapacity(s.capacity.sum)
	s.lane.index.SetCapacity(s.capacity.sum)
	s.asking.order.index.SetCapacity(s.capacity.sum)
}

// tickCapacity does a delayed update of the orders that is due.
func (s *Store) tickCapacity(now time.Time) {
	if due := s.capacity.due; !due.IsZero() && !due.After(now) {
		s.tellCapacity(now)
	}
}

// checkCapacity verifies the sum against the nodes, and the time of the next update
// against that of the last.
func (s *Store) checkCapacity() error {
	var sum resources.Vector
	for _, n := range s.nodes {
		sum = sum.Add(n.allocatable)
	}
	c := &s.capacity
	switch {
	case !sum.Equal(c.sum):
		return fmt.Errorf("capacity: %v, the nodes have %v", c.sum, sum)
	case c.due.IsZero() && !c.told.Equal(c.sum), !c.near():
		return fmt.Errorf("capacity: %v, the orders take it for %v, and are due at %v", c.sum, c.told, c.due)
	case !c.due.IsZero() && !c.due.Equal(c.toldAt.Add(capacityEvery)):
		return fmt.Errorf("capacity: the orders were told at %v, and are due at %v", c.toldAt, c.due)
	}
	return nil
}
