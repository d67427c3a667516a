package store

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
)

// info is an application as additional orders know it.
func (a *app) info(tree *queues.Draft) order.AppInfo {
	return order.AppInfo{Leaf: a.Leaf, Name: a.Name.String(), Submitted: a.Submitted, Class: a.class(tree), Used: a.Committed()}
}

// indexQueue gives a queue to all orders that do not have its current settings.
func (s *Store) indexQueue(q *queues.Queue) {
	if s.pending.SetQueue(q) {
		s.asking.Order.SetQueue(q)
	}
}
