package victims

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Group is what has to start together with an asker. Laws 2 and 4 are judged for all of
// it: pods that go for a part of a group that cannot have the rest would go in vain.
type Group struct {
	// Name is namespace and name, for people.
	Name string
	// Pods is how many pods have to start beside the asker that neither have nor hold a
	// node. Shares are what they request.
	Pods   int
	Shares []Share
	// Free is what all nodes together have for the group once leaving pods are gone and
	// holders have what they wait for.
	Free Amounts
}

// Share is what the pods of a group in one queue request.
type Share struct {
	Leaf queues.ID
	// Request is the sum. Least is, by type, the least that one of them requests, of those
	// that request the type.
	Request, Least Amounts
}

// Together is what a group lacks, and by which numbers.
type Together struct {
	Name string
	// Pods is how many pods have to start, with the asker; Requested is what they request of
	// the type, below Queue where law 4 is in the way.
	Pods      int
	Type      string
	Requested resources.Amount
	// Queue uses so much of what it is guaranteed (law 4); empty where law 2 is in the way.
	Queue            string
	Used, Guaranteed resources.Amount
	// Free is free on nodes, and Above is what other queues use above their guarantees (law 2).
	Free, Above resources.Amount
}

// sentence tells people why no pods go for a part of the group.
func (g *Together) sentence() string {
	s := fmt.Sprintf("PodGroup %s starts with %d more pods at once, which request %s %s", g.Name, g.Pods, resources.Format(g.Type, g.Requested), g.Type)
	if g.Queue != "" {
		return s + fmt.Sprintf(", and queue %s uses %s of %s guaranteed %s: no pods are preempted for a part of the group (law 4)", g.Queue,
			resources.Format(g.Type, g.Used), resources.Format(g.Type, g.Guaranteed), g.Type)
	}
	return s + fmt.Sprintf(", and there are %s free and %s that other queues use above their guarantees: no pods are preempted for a part of the group (law 2)",
		resources.Format(g.Type, g.Free), resources.Format(g.Type, g.Above))
}

// request is what the asker, and those of its group below a queue, request of each type:
// the sum, and the least.
type request struct{ sum, least []int64 }

// findRequests finds that for each queue of the ask's path.
func (s *scene) findRequests() {
	g := s.ask.Group
	if g == nil {
		return
	}
	s.requests = make([]request, len(s.path))
	for d := range s.path {
		s.requests[d] = request{make([]int64, len(s.world.Types)), make([]int64, len(s.world.Types))}
		s.requests[d].add(s.ask.Request, s.ask.Request)
	}
	for _, share := range g.Shares {
		for q := s.world.Queues.Queue(share.Leaf); q != nil; q = s.world.Queues.Queue(q.Parent) {
			if d := slices.IndexFunc(s.path, func(a *account) bool { return a.queue.ID == q.ID }); d >= 0 {
				s.requests[d].add(share.Request, share.Least)
			}
		}
	}
}

func (r *request) add(sum, least Amounts) {
	for t := range r.sum {
		r.sum[t] = plus(r.sum[t], sum.at(t))
		if l := least.at(t); l > 0 && (r.least[t] == 0 || l < r.least[t]) {
			r.least[t] = l
		}
	}
}

// requested is what the asker and its group request of a type below a queue of the ask's
// path, and the least that one of them requests.
func (s *scene) requested(a *account, t int) (sum, least int64) {
	if s.requests == nil {
		one := s.ask.Request.at(t)
		return one, one
	}
	return s.requests[a.depth].sum[t], s.requests[a.depth].least[t]
}

// above is what queues that may lose pods for the asker use of a type above what they are
// guaranteed (law 2).
func (st *stance) above(t int) int64 {
	sum := int64(0)
	for d := st.fence; d < len(st.path); d++ {
		if !st.mayAsk[d] {
			continue
		}
		for _, child := range st.path[d].queue.Children {
			if d+1 == len(st.path) || child != st.path[d+1].queue.ID {
				sum = plus(sum, st.aboveIn(st.world.Queues.Queue(child), t))
			}
		}
	}
	return sum
}

// aboveIn is that of one queue and all below it.
func (st *stance) aboveIn(q *queues.Queue, t int) int64 {
	if q == nil {
		return 0
	}
	name := st.world.Types[t]
	used := int64(q.Used().Get(name))
	own, sum := used, int64(0)
	for _, child := range q.Children {
		if c := st.world.Queues.Queue(child); c != nil {
			own = minus(own, int64(c.Used().Get(name)))
			sum = plus(sum, st.aboveIn(c, t))
		}
	}
	if !protected(st.world.Queues, q) { // a queue that became a parent may have pods of its own
		sum = plus(sum, max(own, 0))
	}
	if g, ok := q.Guaranteed.Get(name); ok {
		sum = min(sum, max(minus(used, int64(g)), 0))
	}
	return sum
}

// lacks returns the first contested type of which there is too little for the asker's
// group, whichever pods go (law 2); -1 for none.
func (st *stance) lacks() int {
	if st.requests == nil {
		return -1
	}
	for _, t := range st.contested {
		if st.requests[0].sum[t] > plus(st.ask.Group.Free.at(t), st.above(t)) {
			return t
		}
	}
	return -1
}

// together says what the asker's group lacks, where the refusal is for that: the asker
// alone might have room made.
func (pl *planner) together(d *Decision) *Together {
	g := pl.ask.Group
	if g == nil {
		return nil
	}
	out := &Together{Name: g.Name, Pods: g.Pods + 1}
	switch d.Stopped {
	case Law4:
		alone := *pl.scene
		alone.requests = nil
		for i, c := range d.Asks {
			at := slices.IndexFunc(pl.path, func(a *account) bool { return a.queue.Path == c.Queue })
			t := slices.Index(pl.world.Types, c.Type)
			if !alone.underGuarantee(pl.path[at], t) {
				return nil
			}
			if i == 0 {
				out.Type, out.Queue, out.Used, out.Guaranteed = c.Type, c.Queue, c.Used, c.Guaranteed
				out.Requested = resources.Amount(pl.requests[at].sum[t])
			}
		}
		if len(d.Asks) == 0 {
			return nil
		}
		return out
	case Law2:
		poor := slices.DeleteFunc(slices.Clone(pl.stances), func(st *stance) bool { return st.lacking < 0 })
		if len(poor) == 0 {
			return nil
		}
		st := slices.MinFunc(poor, func(a, b *stance) int { return cmp.Compare(pl.world.Types[a.lacking], pl.world.Types[b.lacking]) })
		t := st.lacking
		out.Type, out.Requested = pl.world.Types[t], resources.Amount(st.requests[0].sum[t])
		out.Free, out.Above = resources.Amount(g.Free.at(t)), resources.Amount(st.above(t))
		return out
	}
	return nil
}
