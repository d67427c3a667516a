package store

import (
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// charge sets what a pod of an application is charged, and updates the orders.
func (s *Store) charge(p *pod, amount resources.Vector, in cache.Columns) {
	a := p.app
	c := s.cache.Books.Charge(&p.cachePod, amount, in)
	s.pending.Demand.Changed()
	s.history.apps.Add(a)
	s.queuesChanged(a.Leaf, &c)
	s.asking.Order.Tell(s.cache.Tree(), a, a.Leaf, a.Committed())
	if !c.Orders() {
		return
	}
	s.pending.SetUsed(s.cache.Tree(), a, a.ordered, a.Leaf, a.Committed())
}

// weigh updates what a pod is charged as leaving or arriving: leaving if it has a node
// and is about to leave it, arriving if it holds a node and has none yet.
func (s *Store) weigh(p *pod) {
	if p.app == nil {
		return
	}
	s.weighAs(p, p.moves())
}

// moving are the columns of pods that are about to come to a node or to leave it.
const moving = cache.Arriving | cache.Leaving | cache.Preempted

// moves has the columns that a pod belongs to of these.
func (p *pod) moves() cache.Columns {
	switch {
	case p.leaves() && (p.chosenBy != "" || p.Preempted):
		return cache.Leaving | cache.Preempted
	case p.leaves():
		return cache.Leaving
	case !p.state.HasNode() && p.asks.Holds():
		return cache.Arriving
	}
	return 0
}

func (s *Store) weighAs(p *pod, in cache.Columns) {
	if p.In()&moving == in {
		return
	}
	arrived := p.Is(cache.Arriving)
	s.charge(p, p.Amount(), p.In()&^moving|in)
	if arrived {
		s.pending.Release(s.cache.Tree(), p.app.Leaf)
	}
	s.touchPod(p)
}

// live updates whether a pod of an application lives: it is known and not being deleted.
func (s *Store) live(p *pod, lives bool) {
	s.cache.Originators.Live(&p.cachePod, lives)
	s.routeOriginators()
}

// routeOriginators notes that pods changed for plans and readers, because it may be other
// than before whether they are originators.
func (s *Store) routeOriginators() {
	for _, p := range s.cache.Originators.Take() {
		s.touchPod(s.pods[p.UID])
	}
}
