package cache

import (
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Capacity is the capacity of all nodes, and the value of it that the orders use.
//
// A queue without a guarantee shares in the capacity of all nodes, so a node that comes
// or goes changes the shares of all queues. With 5,000 queues the update takes
// milliseconds under the lock, and nodes often come by the hundred. So the orders get
// small changes of the capacity late: the value they use is the same for all queues, and
// off by at most a sixteenth for at most capacityEvery. All other code has the exact
// value at once. A cluster that grows from one node to 5,000 updates the orders about a
// hundred times.
//
//	Set, updated long ago            Set, updated just now and a small change
//	  ┌───────┐    ┌────────────────────────────────────────────┐    ┌───────┐
//	  │       ▼    │                                            ▼    │       ▼
//	  └─────── told ◄──────────────────────────────────────────── due ───────┘
//	                  Tick, at told + capacityEvery,                  Set,
//	                  or Set, no small change                         still small
//
// The caller updates the orders whenever Set or Tick return true, and calls Tick at the
// time that Due returns. The zero Capacity has no nodes.
type Capacity struct {
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

// Sum is the exact capacity of all nodes.
func (c *Capacity) Sum() resources.Vector { return c.sum }

// Told is the value that the orders use.
func (c *Capacity) Told() resources.Vector { return c.told }

// Due is when the orders get a small change; zero if they are up to date.
func (c *Capacity) Due() time.Time { return c.due }

// Set sets the capacity. It tells whether the orders get it now: mayWait is false while
// every change has to reach them at once.
func (c *Capacity) Set(sum resources.Vector, mayWait bool, now time.Time) bool {
	c.sum = sum
	if next := c.toldAt.Add(capacityEvery); mayWait && now.Before(next) && c.near() {
		c.due = next
		return false
	}
	c.tell(now)
	return true
}

// Tick tells whether the orders get a delayed change now.
func (c *Capacity) Tick(now time.Time) bool {
	if c.due.IsZero() || c.due.After(now) {
		return false
	}
	c.tell(now)
	return true
}

// tell notes that the orders get the exact capacity now.
func (c *Capacity) tell(now time.Time) { c.told, c.toldAt, c.due = c.sum, now, time.Time{} }

// near tells whether the orders' value is close to the capacity in every type.
func (c *Capacity) near() bool {
	for _, changed := range []resources.Vector{c.sum.Sub(c.told), c.told.Sub(c.sum)} {
		for name, amount := range changed.All() {
			if amount > c.told.Get(name)/capacityPart {
				return false
			}
		}
	}
	return true
}

// Check verifies the sum against that of the nodes, and the time of the next update
// against that of the last.
func (c *Capacity) Check(sum resources.Vector) error {
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
