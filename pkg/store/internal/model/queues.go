package model

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// IndexQueues gives the orders all queues with changed settings.
func (x *Model) IndexQueues() {
	for q := range x.Cache.Tree().All() {
		x.indexQueue(q)
	}
}

// IndexPath is IndexQueues for the queues from root to a leaf.
func (x *Model) IndexPath(leaf queues.ID) {
	path := slices.Collect(x.Cache.Tree().Ancestors(leaf))
	slices.Reverse(path)
	for _, q := range path {
		x.indexQueue(q)
	}
}

// indexQueue gives a queue to all orders that do not have its current settings.
func (x *Model) indexQueue(q *queues.Queue) {
	if x.Pending.SetQueue(q) {
		x.Asking.Order.SetQueue(q)
	}
}

// SetCapacity sets the capacity of all nodes.
func (x *Model) SetCapacity(sum resources.Vector, now time.Time) {
	x.Cache.Tree().SetCapacity(sum)
	if x.Cache.Capacity.Set(sum, x.Started, now) {
		x.TellCapacity()
	}
}

// TellCapacity gives the orders the capacity that they are to use.
func (x *Model) TellCapacity() {
	told := x.Cache.Capacity.Told()
	x.Pending.SetCapacity(told)
	x.Asking.Order.SetCapacity(told)
}
