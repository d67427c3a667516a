package victims

import (
	"math"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

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

// below is the highest priority that is lifted to at most p.
func (l lift) below(p int64) int64 {
	switch {
	case !l.fixed:
		return p - l.value
	case l.value <= p:
		return math.MaxInt64
	}
	return math.MinInt64
}

// route is the way from a victim's leaf to the ask's path.
type route struct {
	leaf *queues.Queue
	// barred says which rule forbids victims here for every ask of the scene.
	barred verdict
	// lca is the depth of the lowest common ancestor; root's is 0.
	lca int
	// side are the accounts strictly below the common ancestor, leaf first.
	side []*account
	// counts are the accounts a victim is taken from: side, then the common
	// ancestor and all above it.
	counts []*account
	// most is the highest priority of a victim that law 6 allows.
	most int64
	// lift is what all queues strictly below the fence root do to a priority, below
	// what those strictly below the common ancestor do.
	lift, below lift
}

// route returns the way from a leaf, made once.
func (s *scene) route(leaf queues.ID) *route {
	id := indexOf(leaf)
	if id >= len(s.routes) || s.routes[id] == nil {
		s.routes = grown(s.routes, id)
		s.routes[id] = s.newRoute(leaf)
	}
	return s.routes[id]
}

// indexOf numbers leaves for lists; 0 is where foreign pods are.
func indexOf(leaf queues.ID) int { return int(max(leaf, queues.NoQueue)) + 1 }

func (s *scene) newRoute(leaf queues.ID) *route {
	r := s.slabs.routes.one()
	r.leaf = s.world.Queues.Queue(leaf)
	switch {
	case r.leaf == nil:
		r.barred = byForeign
		return r
	case leaf == s.ask.Leaf:
		r.barred = byLaw3
		return r
	}
	var l lift
	s.way = s.way[:0]
	for q := r.leaf; q != nil; q = s.world.Queues.Queue(q.Parent) {
		a := s.account(q)
		if a.depth >= 0 {
			r.lca = a.depth
			break
		}
		s.way = append(s.way, a)
		l = l.then(q.Policies)
	}
	r.most = l.below(s.lifts[r.lca].apply(int64(s.ask.Priority)))
	side := len(s.way)
	for d := r.lca; d >= 0; d-- {
		s.way = append(s.way, s.path[d])
	}
	r.counts = s.slabs.ways.list(len(s.way))
	copy(r.counts, s.way)
	r.side = r.counts[:side:side]
	r.lift, r.below = l, l
	for d := r.lca; d > s.fence; d-- {
		r.lift = r.lift.then(s.path[d].queue.Policies)
	}
	switch {
	case len(r.side) == 0: // the asker is below the victim's queue, which became a parent
		r.barred = byLaw3
	case r.lca < s.fence:
		r.barred = byLaw7
	case protected(s.world.Queues, r.leaf):
		r.barred = byDisabled
	}
	return r
}

// frees is how much a victim frees for a goal; lca is the depth of the queue that
// its way meets the ask's path in.
func frees(request Amounts, lca int, onNode bool, g *goal) int64 {
	if g.depth == 0 && !onNode || g.depth > lca {
		return 0
	}
	return request.at(g.typ)
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
