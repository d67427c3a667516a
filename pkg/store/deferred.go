package store

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
)

// appInfo is an application as additional orders know it.
func (s *Store) appInfo(a *app) order.AppInfo {
	return order.AppInfo{Leaf: a.Leaf, Name: a.Name.String(), Submitted: a.Submitted, Class: s.class(a), Used: a.Committed()}
}

// indexQueue gives a queue to all orders that do not have its current settings.
func (s *Store) indexQueue(q *queues.Queue) {
	if s.index.Has(q.ID, q.Settings) {
		return
	}
	s.index.SetQueue(q.ID, q.Settings)
	s.index.SetUsed(q.ID, q.Committed(), q.CommittedKept())
	s.lane.SetQueue(q)
	s.asking.Order.SetQueue(q)
}
