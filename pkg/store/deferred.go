package store

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// deferred is an additional order, of pods that are not in the main order. It is small and
// mostly empty, so it gets the usage of queues and applications only while it has pods.
type deferred struct {
	index *order.Index
	apps  map[*app]*order.App
	// used is what counts as used in this order; stays is the part of it that no plan
	// takes.
	used, stays func(*queues.Queue) resources.Vector
}

func newDeferred(used, stays func(*queues.Queue) resources.Vector) deferred {
	return deferred{index: order.NewIndex(), apps: map[*app]*order.App{}, used: used, stays: stays}
}

// push puts a pod into the order.
func (x *deferred) push(s *Store, p *pod) *order.Ask {
	in := x.apps[p.app]
	if in == nil {
		in = x.index.NewApp(p.app.leaf, p.app.name.String(), p.app.submitted, s.class(p.app))
		x.apps[p.app] = in
	}
	ask := x.index.PushKind(in, p.askKey(), p.Request, p.apartKind())
	x.tell(s.draft, p.app)
	return ask
}

// tell updates the usage of an application and its queues.
func (x *deferred) tell(tree *queues.Draft, a *app) {
	if x.index.Eligible() == 0 {
		return
	}
	if in := x.apps[a]; in != nil {
		x.index.SetAppUsed(in, a.committed())
	}
	for q := range tree.Ancestors(a.leaf) {
		x.index.SetUsed(q.ID, x.used(q), x.stays(q))
	}
}

func (x *deferred) setSubmitted(a *app) {
	if in := x.apps[a]; in != nil {
		x.index.SetSubmitted(in, a.submitted)
	}
}

// forget forgets an application without pods.
func (x *deferred) forget(a *app) { delete(x.apps, a) }

func (x *deferred) setQueue(q *queues.Queue) {
	x.index.SetQueue(q.ID, q.Settings)
	x.index.SetUsed(q.ID, x.used(q), x.stays(q))
}

// indexQueue gives a queue to all orders that do not have its current settings.
func (s *Store) indexQueue(q *queues.Queue) {
	if s.index.Has(q.ID, q.Settings) {
		return
	}
	s.index.SetQueue(q.ID, q.Settings)
	s.index.SetUsed(q.ID, q.Committed(), q.CommittedKept())
	s.lane.setQueue(q)
	s.asking.order.setQueue(q)
}
