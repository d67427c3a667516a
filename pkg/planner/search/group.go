package search

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// findRequests computes the requests of the asker's group for each queue of the ask's path.
func (s *problem) findRequests() {
	g := s.ask.Group
	if g == nil {
		return
	}
	s.requests = make([]planner.Share, len(s.path))
	for d := range s.path {
		s.requests[d].Add(s.ask.Request, s.ask.Request)
	}
	for _, share := range g.Shares {
		for q := s.snapshot.Queues.Queue(share.Leaf); q != nil; q = s.snapshot.Queues.Queue(q.Parent) {
			if d := slices.IndexFunc(s.path, func(a *account) bool { return a.queue.ID == q.ID }); d >= 0 {
				s.requests[d].Add(share.Request, share.Least)
			}
		}
	}
}

// requested returns what the asker and its group request of a type below a queue of the
// ask's path, and the smallest of these requests.
func (s *problem) requested(a *account, t int) (sum, least int64) {
	if s.requests == nil {
		one := s.ask.Request.At(t)
		return one, one
	}
	return s.requests[a.depth].Request.At(t), s.requests[a.depth].Least.At(t)
}

// above returns how much of a type the queues below a depth that may lose pods for the asker use above
// their guarantees (law 2).
func (cv *contestedView) above(t, depth int) int64 {
	sum := int64(0)
	for d := max(cv.fence, depth); d < len(cv.path); d++ {
		if !cv.mayAsk[d] {
			continue
		}
		for _, child := range cv.path[d].queue.Children {
			if d+1 == len(cv.path) || child != cv.path[d+1].queue.ID {
				sum = planner.Plus(sum, cv.aboveIn(cv.snapshot.Queues.Queue(child), t))
			}
		}
	}
	return sum
}

// aboveIn is the same for one queue and all below it.
func (cv *contestedView) aboveIn(q *queues.Queue, t int) int64 {
	if q == nil {
		return 0
	}
	name := cv.snapshot.Types[t]
	used := int64(q.Used().Get(name))
	own, sum := used, int64(0)
	for _, child := range q.Children {
		if c := cv.snapshot.Queues.Queue(child); c != nil {
			own = planner.Minus(own, int64(c.Used().Get(name)))
			sum = planner.Plus(sum, cv.aboveIn(c, t))
		}
	}
	if !queues.PreemptionDisabled(cv.snapshot.Queues, q) { // a queue that became a parent may have pods of its own
		sum = planner.Plus(sum, max(own, 0))
	}
	if g, ok := q.Guaranteed.Get(name); ok {
		sum = min(sum, max(planner.Minus(used, int64(g)), 0))
	}
	return sum
}

// lacks returns the first contested type that does not suffice for the asker's group,
// whichever pods are preempted (law 2); -1 for none.
func (cv *contestedView) lacks() int {
	if cv.requests == nil {
		return -1
	}
	for _, t := range cv.contested {
		if cv.requests[0].Request.At(t) > planner.Plus(cv.ask.Group.Free.At(t), cv.above(t, 0)) {
			return t
		}
	}
	return -1
}

// groupShortage returns what the asker's group lacks, if the group is the reason of the
// refusal and the asker alone might get a plan.
func (pl *planning) groupShortage(d *planner.Decision) *planner.GroupShortage {
	g := pl.ask.Group
	if g == nil {
		return nil
	}
	out := &planner.GroupShortage{Name: g.Name, Pods: len(g.Members) + 1}
	switch d.Stopped {
	case planner.Law4:
		alone := *pl.problem
		alone.requests = nil
		for i, c := range d.Asks {
			at := slices.IndexFunc(pl.path, func(a *account) bool { return a.queue.Path == c.Queue })
			t := slices.Index(pl.snapshot.Types, c.Type)
			if !alone.underGuarantee(pl.path[at], t) {
				return nil
			}
			if i == 0 {
				out.Type, out.Queue, out.Used, out.Guaranteed = c.Type, c.Queue, c.Used, c.Guaranteed
				out.Requested = resources.Amount(pl.requests[at].Request.At(t))
			}
		}
		if len(d.Asks) == 0 {
			return nil
		}
		return out
	case planner.Law2:
		poor := slices.DeleteFunc(slices.Clone(pl.views), func(cv *contestedView) bool { return cv.lacking < 0 })
		if len(poor) == 0 {
			return nil
		}
		cv := slices.MinFunc(poor, func(a, b *contestedView) int {
			return cmp.Compare(pl.snapshot.Types[a.lacking], pl.snapshot.Types[b.lacking])
		})
		t := cv.lacking
		out.Type, out.Requested = pl.snapshot.Types[t], resources.Amount(cv.requests[0].Request.At(t))
		out.Free, out.Above = resources.Amount(g.Free.At(t)), resources.Amount(cv.above(t, 0))
		return out
	}
	return nil
}
