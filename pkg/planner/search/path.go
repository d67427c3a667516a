package search

import (
	"math"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// priorityShift is the priority shift by the queues on a path: an offset, or a replacement.
type priorityShift struct {
	fixed bool
	value int64
}

func (l priorityShift) apply(p int64) int64 {
	if l.fixed {
		return l.value
	}
	return p + l.value
}

// then returns l followed by the shift of a queue with these policies.
func (l priorityShift) then(p config.Policies) priorityShift {
	if p.PriorityFence {
		return priorityShift{fixed: true, value: int64(p.PriorityOffset)}
	}
	l.value += int64(p.PriorityOffset)
	return l
}

// below returns the highest priority that is shifted to at most p.
func (l priorityShift) below(p int64) int64 {
	switch {
	case !l.fixed:
		return p - l.value
	case l.value <= p:
		return math.MaxInt64
	}
	return math.MinInt64
}

// pathToLCA is the path from a victim's leaf to the ask's path.
type pathToLCA struct {
	leaf *queues.Queue
	// barred is the rule that forbids victims of this leaf for every ask of the problem.
	barred verdict
	// lca is the depth of the lowest common ancestor; the depth of root is 0.
	lca int
	// side are the accounts strictly below the common ancestor, leaf first.
	side []*account
	// counts are the accounts that a victim is taken from: side, then the common ancestor
	// and all above it.
	counts []*account
	// maxPriority is the highest priority of a victim that law 6 allows.
	maxPriority int64
	// shift is the shift by all queues strictly below the fence root; below is the shift
	// by those strictly below the common ancestor.
	shift, below priorityShift
}

// pathFrom returns the path from a leaf, which is made once.
func (s *problem) pathFrom(leaf queues.ID) *pathToLCA {
	id := indexOf(leaf)
	if id >= len(s.paths) || s.paths[id] == nil {
		s.paths = grown(s.paths, id)
		s.paths[id] = s.newPath(leaf)
	}
	return s.paths[id]
}

// indexOf numbers leaves for lists; 0 is for foreign pods.
func indexOf(leaf queues.ID) int { return int(max(leaf, queues.NoQueue)) + 1 }

func (s *problem) newPath(leaf queues.ID) *pathToLCA {
	r := &pathToLCA{leaf: s.snapshot.Queues.Queue(leaf)}
	switch {
	case r.leaf == nil:
		r.barred = byForeign
		return r
	case leaf == s.ask.Leaf:
		r.barred = byLaw3
		return r
	}
	var l priorityShift
	for q := r.leaf; q != nil; q = s.snapshot.Queues.Queue(q.Parent) {
		a := s.account(q)
		if a.depth >= 0 {
			r.lca = a.depth
			break
		}
		r.counts = append(r.counts, a)
		l = l.then(q.Policies)
	}
	r.maxPriority = l.below(s.shifts[r.lca].apply(int64(s.ask.Priority)))
	side := len(r.counts)
	for d := r.lca; d >= 0; d-- {
		r.counts = append(r.counts, s.path[d])
	}
	r.side = r.counts[:side:side]
	r.shift, r.below = l, l
	for d := r.lca; d > s.fence; d-- {
		r.shift = r.shift.then(s.path[d].queue.Policies)
	}
	switch {
	case len(r.side) == 0: // the asker is below the victim's queue, which became a parent
		r.barred = byLaw3
	case r.lca < s.fence:
		r.barred = byLaw7
	case queues.PreemptionDisabled(s.snapshot.Queues, r.leaf):
		r.barred = byDisabled
	}
	return r
}

// frees returns how much a victim frees for a goal; lca is the depth at which the
// victim's path meets the ask's path.
func frees(request planner.Amounts, lca int, onNode bool, g *goal) int64 {
	if g.depth == 0 && !onNode || g.depth > lca {
		return 0
	}
	return request.At(g.typ)
}
