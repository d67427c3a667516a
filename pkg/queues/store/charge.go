package store

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// charge is what is added to the usage of an application, of its queues and of
// its owner; amounts may be negative.
type charge struct {
	allocated, admitted, pending resources.Vector
}

func minus(v resources.Vector) resources.Vector { return resources.Vector{}.Sub(v) }

// charge adds to the books and tells the order.
func (s *Store) charge(a *app, c charge) {
	add := func(u *queues.Usage) {
		u.Allocated = u.Allocated.Add(c.allocated)
		u.Admitted = u.Admitted.Add(c.admitted)
		u.Pending = u.Pending.Add(c.pending)
	}
	add(&a.used)
	s.draft.Update(a.leaf, add)
	if c.allocated.IsZero() && c.admitted.IsZero() {
		return
	}
	s.ledger.Update(s.draft, a.leaf, a.owner, func(u *queues.OwnerUsage) {
		u.Allocated = u.Allocated.Add(c.allocated)
		u.Admitted = u.Admitted.Add(c.admitted)
	})
	if c.allocated.Add(c.admitted).IsZero() {
		return // the order looks at the sum of the two
	}
	s.index.SetAppUsed(a.ordered, a.used.Allocated.Add(a.used.Admitted))
	for q := range s.draft.Ancestors(a.leaf) {
		s.index.SetUsed(q.ID, q.Committed())
	}
	s.tellLane(a)
}

// release notes that there may be more room in the queues of a leaf.
func (s *Store) release(leaf queues.ID) {
	for q := range s.draft.Ancestors(leaf) {
		if s.index.HasBlocked(q.ID) {
			s.reconsider[q.ID] = struct{}{}
		}
	}
}
