package victims

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// account is a queue with its amounts as lists.
type account struct {
	queue      *queues.Queue
	index      int // in scene.accounts
	used       []int64
	arriving   []int64
	guaranteed []int64
	named      []bool // types the queue guarantees, with 0 or more
}

// lift is what queues on a way do to a priority: add to it, or replace it.
type lift struct {
	fixed bool
	value int64
}

func (l lift) apply(p int64) int64 {
	if l.fixed {
		return l.value
	}
	return p + l.value
}

// then is l followed by what a queue with these policies does.
func (l lift) then(p config.Policies) lift {
	if p.PriorityFence {
		return lift{fixed: true, value: int64(p.PriorityOffset)}
	}
	l.value += int64(p.PriorityOffset)
	return l
}

// route is the way from a victim's leaf to the ask's path.
type route struct {
	leaf *queues.Queue
	// barred says which rule forbids victims here for every ask of the scene.
	barred Rule
	// lca is the depth of the lowest common ancestor; root's is 0.
	lca int
	// side are the accounts strictly below the common ancestor, leaf first.
	side []*account
	// counts are the accounts a victim is taken from: side, then the common
	// ancestor and all above it.
	counts []*account
	// atLCA is what the side does to a priority; atFence what all queues
	// strictly below the fence root do.
	atLCA, atFence lift
}

// account returns the amounts of a queue.
func (s *scene) account(q *queues.Queue) *account {
	if a := s.byQueue[q.ID]; a != nil {
		return a
	}
	n := len(s.world.Types)
	a := &account{queue: q, index: len(s.accounts), guaranteed: make([]int64, n), named: make([]bool, n)}
	a.used = s.list(q.Used())
	a.arriving = s.list(q.Arriving)
	for t, name := range s.world.Types {
		if g, ok := q.Guaranteed.Get(name); ok {
			a.guaranteed[t], a.named[t] = int64(g), true
		}
	}
	s.byQueue[q.ID] = a
	s.accounts = append(s.accounts, a)
	return a
}

func (s *scene) list(v resources.Vector) []int64 {
	out := make([]int64, len(s.world.Types))
	for t, name := range s.world.Types {
		out[t] = int64(v.Get(name))
	}
	return out
}

// route returns the way from a leaf, made once.
func (s *scene) route(leaf queues.ID) *route {
	if r := s.routes[leaf]; r != nil {
		return r
	}
	r := s.newRoute(leaf)
	s.routes[leaf] = r
	return r
}

func (s *scene) newRoute(leaf queues.ID) *route {
	r := &route{leaf: s.world.Queues.Queue(leaf)}
	switch {
	case r.leaf == nil:
		r.barred = RuleForeign
		return r
	case leaf == s.ask.Leaf:
		r.barred = Law3
		return r
	}
	for q := r.leaf; q != nil; q = s.world.Queues.Queue(q.Parent) {
		if depth, on := s.depth[q.ID]; on {
			r.lca = depth
			break
		}
		r.side = append(r.side, s.account(q))
		r.atLCA = r.atLCA.then(q.Policies)
	}
	r.counts = append(r.counts, r.side...)
	for d := r.lca; d >= 0; d-- {
		r.counts = append(r.counts, s.path[d])
	}
	r.atFence = r.atLCA
	for d := r.lca; d > s.fence; d-- {
		r.atFence = r.atFence.then(s.path[d].queue.Policies)
	}
	switch {
	case len(r.side) == 0: // the asker is below the victim's queue, which became a parent
		r.barred = Law3
	case r.lca < s.fence:
		r.barred = Law7
	case protected(s.world.Queues, r.leaf):
		r.barred = RuleDisabled
	}
	return r
}

// protected tells whether preemption.policy: disabled holds for a leaf. The
// configuration hands it down to managed queues; a dynamic one has it from its
// template or from the queues it lives in.
func protected(v queues.View, q *queues.Queue) bool {
	for ; q != nil; q = v.Queue(q.Parent) {
		if q.Policies.Preemption == config.PreemptionDisabled {
			return true
		}
		if q.Managed {
			return false
		}
	}
	return false
}
