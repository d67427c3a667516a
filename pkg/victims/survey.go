package victims

import (
	"cmp"
	"math"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// candidate is a pod that every law about single victims allows.
type candidate struct {
	pod    *Pod
	route  *route
	node   *Node
	onNode bool // it is on the node that is to run the asker
	// priority is the effective one strictly below the fence root.
	priority int64
}

func (c *candidate) frees(g *goal) int64 { return c.route.frees(c.pod, c.onNode, g) }

// survey is a node with what the asker lacks there and the pods that may go.
type survey struct {
	*stance
	node *Node
	// goals is what has to be freed.
	goals      []goal
	candidates []candidate
}

// look surveys a node. The survey is good until the next one. Everything helps
// where the obstacle is not an amount.
func (pl *planner) look(n *Node, everything bool) *survey {
	sv := &pl.survey
	sv.node = n
	sv.goals = pl.goals(sv.goals[:0], n)
	sv.stance = pl.stanceFor(sv.goals)
	sv.candidates = sv.gather(sv.candidates[:0], n, everything, pl.tally())
	return sv
}

// stanceFor returns the stance for goals, made once for each contested set.
func (pl *planner) stanceFor(goals []goal) *stance {
	pl.contestedNow = pl.contested(pl.contestedNow[:0], goals)
	for _, st := range pl.stances {
		if slices.Equal(st.contested, pl.contestedNow) {
			return st
		}
	}
	st := pl.newStance(slices.Clone(pl.contestedNow))
	pl.stances = append(pl.stances, st)
	return st
}

// gather appends the candidates among the pods of the node.
func (sv *survey) gather(to []candidate, n *Node, everything bool, rejected *[verdicts]int) []candidate {
	for _, p := range n.Pods {
		r := sv.route(p.Leaf)
		why := sv.judge(p, r)
		if p.Leaf == queues.NoQueue {
			why = byForeign
		}
		if why == mayGo && !everything && !helps(p, r, true, sv.goals) {
			why = byNeed
		}
		if why != mayGo {
			rejected[why]++
			continue
		}
		to = append(to, candidate{p, r, n, true, r.lift.apply(int64(p.Priority))})
	}
	return to
}

// helps tells whether a victim frees something that is needed.
func helps(p *Pod, r *route, onNode bool, goals []goal) bool {
	for i := range goals {
		if r.frees(p, onNode, &goals[i]) > 0 {
			return true
		}
	}
	return false
}

// floor is a harm that no plan with a victim undercuts, and false if even all
// candidates together are not enough. Only goals for which it has all the
// candidates count: those on the node, and in a pool all.
func (sv *survey) floor(from []candidate, goals []goal) (harm, bool) {
	h := harm{priority: math.MinInt64, victims: 1}
	clean := func(c *candidate) bool { return true }
	if !sv.cover(from, goals, clean) {
		return h, false
	}
	spared := func(c *candidate) bool { return !c.pod.OptedOut }
	if !sv.cover(from, goals, spared) {
		h.optedOut = 1
		return h, true
	}
	kept := func(c *candidate) bool { return spared(c) && !sv.violates(c.pod) }
	if !sv.cover(from, goals, kept) {
		h.violations = 1
		return h, true
	}
	plain := func(c *candidate) bool { return kept(c) && !c.pod.Originator }
	if !sv.cover(from, goals, plain) {
		h.originators = 1
		return h, true
	}
	for {
		next := int64(math.MaxInt64)
		for i := range from {
			if c := &from[i]; c.priority > h.priority && plain(c) {
				next = min(next, c.priority)
			}
		}
		h.priority = next
		low := func(c *candidate) bool { return c.priority <= next && plain(c) }
		if next == math.MaxInt64 || sv.cover(from, goals, low) {
			h.victims = leastVictims(from, goals, low)
			return h, true
		}
	}
}

// cover tells whether the candidates that are kept free enough for every goal.
func (sv *survey) cover(from []candidate, goals []goal, keep func(*candidate) bool) bool {
	for g := range goals {
		sum := int64(0)
		for i := range from {
			if c := &from[i]; keep(c) {
				sum = plus(sum, c.frees(&goals[g]))
			}
		}
		if sum < goals[g].amount {
			return false
		}
	}
	return true
}

// leastVictims is how many of the candidates it takes at least.
func leastVictims(from []candidate, goals []goal, keep func(*candidate) bool) int {
	least := 1
	for g := range goals {
		most := int64(0)
		for i := range from {
			if c := &from[i]; keep(c) {
				most = max(most, c.frees(&goals[g]))
			}
		}
		if most > 0 {
			least = max(least, int(min((goals[g].amount-1)/most+1, math.MaxInt32)))
		}
	}
	return least
}

// violates tells whether a pod is covered by a budget without disruptions left.
func (s *scene) violates(p *Pod) bool {
	for _, b := range p.Budgets {
		if s.world.Budgets[b] <= 0 {
			return true
		}
	}
	return false
}

// byHarm puts the least harm first, among equal harm the largest, then the
// youngest; equal kinds are neighbours.
func byHarm(a, b *candidate) int {
	return cmp.Or(
		cmp.Compare(rankOf(a.pod.OptedOut), rankOf(b.pod.OptedOut)),
		cmp.Compare(min(len(a.pod.Budgets), 1), min(len(b.pod.Budgets), 1)),
		cmp.Compare(rankOf(a.pod.Originator), rankOf(b.pod.Originator)),
		cmp.Compare(a.priority, b.priority),
		slices.Compare(b.pod.Request, a.pod.Request),
		slices.Compare(a.pod.Budgets, b.pod.Budgets),
		cmp.Compare(a.route.leaf.Path, b.route.leaf.Path),
		cmp.Compare(rankOf(b.onNode), rankOf(a.onNode)),
		b.pod.Created.Compare(a.pod.Created),
		cmp.Compare(a.pod.UID, b.pod.UID),
	)
}

// alike tells whether no criterion before creation tells two candidates apart:
// taking the younger is as good as taking the other.
func alike(a, b *candidate) bool {
	return a.route == b.route && a.onNode == b.onNode && a.priority == b.priority &&
		a.pod.OptedOut == b.pod.OptedOut && a.pod.Originator == b.pod.Originator &&
		slices.Equal(a.pod.Request, b.pod.Request) && slices.Equal(a.pod.Budgets, b.pod.Budgets)
}

func rankOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
