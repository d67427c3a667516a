package store

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// charge is a change of the usage of an application, its queues and its owner; amounts
// may be negative.
type charge struct {
	allocated, admitted, pending, leaving, arriving, preempted resources.Vector
}

func minus(v resources.Vector) resources.Vector { return resources.Vector{}.Sub(v) }

// charge adds to the usage sums and updates the orders.
func (s *Store) charge(a *app, c charge) {
	add := func(u *queues.Usage) {
		u.Allocated = u.Allocated.Add(c.allocated)
		u.Admitted = u.Admitted.Add(c.admitted)
		u.Pending = u.Pending.Add(c.pending)
		u.Leaving = u.Leaving.Add(c.leaving)
		u.Arriving = u.Arriving.Add(c.arriving)
		u.Preempted = u.Preempted.Add(c.preempted)
	}
	add(&a.used)
	s.demand.Changed()
	a.growMost(c.allocated)
	s.register.apps.Add(a)
	s.draft.Update(a.leaf, add)
	s.queuesChanged(a.leaf, &c)
	if !c.allocated.IsZero() || !c.admitted.IsZero() {
		s.ledger.Update(s.draft, a.leaf, a.owner, func(u *queues.OwnerUsage) {
			u.Allocated = u.Allocated.Add(c.allocated)
			u.Admitted = u.Admitted.Add(c.admitted)
		})
	}
	s.asking.Order.Tell(s.draft, a, a.leaf, a.committed())
	more := c.allocated.Add(c.admitted).Add(c.arriving)
	if more.IsZero() && c.leaving.IsZero() && c.preempted.IsZero() {
		return // the order depends only on the sum of the three and on the part that plans take
	}
	s.index.SetAppUsed(a.ordered, a.committed())
	for q := range s.draft.Ancestors(a.leaf) {
		s.index.SetUsed(q.ID, q.Committed(), q.CommittedKept())
	}
	s.lane.Tell(s.draft, a, a.leaf, a.committed())
}

// committed is what the application uses or is about to use.
func (a *app) committed() resources.Vector {
	return a.used.Allocated.Add(a.used.Admitted).Add(a.used.Arriving)
}

// weigh updates what a pod is charged as leaving or arriving: leaving if it has a node
// and is about to leave it, arriving if it holds a node and has none yet.
func (s *Store) weigh(p *pod) {
	if p.app == nil {
		return
	}
	var w weight
	switch {
	case p.leaves():
		w.leaving = p.held
		if p.chosenBy != "" || p.Preempted {
			w.preempted = p.held
		}
	case !p.state.HasNode() && p.asks.Holds():
		w.arriving = p.held
	}
	s.weighAs(p, w)
}

// weight is what a pod is charged as leaving, the preempted part of that, and what it is
// charged as arriving.
type weight struct{ leaving, preempted, arriving resources.Vector }

func (w weight) equal(o weight) bool {
	return w.leaving.Equal(o.leaving) && w.preempted.Equal(o.preempted) && w.arriving.Equal(o.arriving)
}

func (s *Store) weighAs(p *pod, w weight) {
	if p.weight.equal(w) {
		return
	}
	s.charge(p.app, charge{
		leaving: w.leaving.Sub(p.leaving), preempted: w.preempted.Sub(p.preempted), arriving: w.arriving.Sub(p.arriving),
	})
	if !p.arriving.IsZero() {
		s.release(p.app.leaf)
	}
	next := *p.prospect
	next.weight = w
	s.foresee(p, next)
	if w.leaving.IsZero() {
		delete(s.leaving, p.UID)
	} else {
		s.leaving[p.UID] = p
	}
	s.touchPod(p)
}

// release notes that the queues of a leaf may have more room.
func (s *Store) release(leaf queues.ID) {
	for q := range s.draft.Ancestors(leaf) {
		if s.index.HasBlocked(q.ID) || s.groups.HasRefused(q.ID) {
			s.reconsider[q.ID] = struct{}{}
		}
	}
}
