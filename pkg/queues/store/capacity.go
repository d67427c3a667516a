package store

import (
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Where a queue has no guarantee its share is of what all nodes can hold, so a node that
// comes or goes changes the shares of all queues. With 5,000 queues that are milliseconds
// under the lock, and where one node comes, there often come hundreds. So the orders do
// without small changes for a while: what they take for the capacity is the same for all
// queues, off by a sixteenth at most, and that for capacityEvery. Everybody else has it at
// once. A cluster that grows from one node to 5,000 has them told some hundred times.
//
//	setCapacity, told long ago       setCapacity, told a moment ago and a small change
//	  ┌───────┐    ┌────────────────────────────────────────────┐    ┌───────┐
//	  │       ▼    │                                            ▼    │       ▼
//	  └─────── told ◄──────────────────────────────────────────── due ───────┘
//	                  tickCapacity, at told + capacityEvery,          setCapacity,
//	                  or setCapacity, no small change                 still small
//
// Assumptions: until Start nobody asks for the order; the caller comes with Tick when
// [Store.NextDeadline] says.
type capacity struct {
	sum    resources.Vector // of all nodes
	told   resources.Vector // what the orders take it for
	toldAt time.Time        // when the orders were told last
	due    time.Time        // when they are to be; zero while they know it
}

const (
	// capacityEvery is how long the orders do without small changes of the capacity.
	capacityEvery = time.Second
	// capacityPart of what they were told is a small change. In the first second of a small
	// cluster it would be most of it that they did not know, queues would be served in a
	// wrong order, and those that had too little would ask for preemption.
	capacityPart = 16
)

// setCapacity tells what all nodes can hold.
func (s *Store) setCapacity(sum resources.Vector, now time.Time) {
	s.capacity.sum = sum
	s.draft.SetCapacity(sum)
	if next := s.capacity.toldAt.Add(capacityEvery); s.started && now.Before(next) && s.capacity.near() {
		s.capacity.due = next
		return
	}
	s.tellCapacity(now)
}

// near tells whether what the orders take for the capacity is off by little, in every type.
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

// tellCapacity tells the orders.
func (s *Store) tellCapacity(now time.Time) {
	s.capacity.told, s.capacity.toldAt, s.capacity.due = s.capacity.sum, now, time.Time{}
	s.index.SetCapacity(s.capacity.sum)
	s.lane.index.SetCapacity(s.capacity.sum)
	s.asking.order.index.SetCapacity(s.capacity.sum)
}

// tickCapacity tells them what was put off, if it is time.
func (s *Store) tickCapacity(now time.Time) {
	if due := s.capacity.due; !due.IsZero() && !due.After(now) {
		s.tellCapacity(now)
	}
}

// checkCapacity compares the sum with the nodes, and when the orders are told with when
// they were.
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
