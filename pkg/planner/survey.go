package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// candidate is a pod that every law about single victims allows.
type candidate struct {
	*entry
	request Amounts
	route   *route
	node    *Node
	// priority is the effective priority strictly below the fence root, not that of the
	// pod.
	priority int64
	class    class
	onNode   bool // it is on the node of the plan
}

// class is the rank of a single victim by the first three criteria.
type class uint8

// The classes, the least harmful first. A violator is covered by a budget without
// disruptions left.
const (
	plain class = iota
	originator
	violator
	optedOut
	classes
)

// harm returns the smallest values of the first three criteria of a set with such a
// victim.
func (c class) harm() harm {
	h := harmless
	switch c {
	case originator:
		h.originators = 1
	case violator:
		h.violations = 1
	case optedOut:
		h.optedOut = 1
	}
	return h
}

// exceeds reports whether every set of at least this many victims with this one does more
// harm than h.
func (c *candidate) exceeds(h *harm, victims int) bool {
	if c.class == plain && h.optedOut == 0 && h.violations == 0 && h.originators == 0 && h.slow == 0 {
		return c.priority > h.priority || c.priority == h.priority && (c.slow || victims > h.victims)
	}
	least := c.class.harm()
	least.priority, least.slow, least.victims = c.priority, rankOf(c.slow), victims
	return compareHarm(least, *h) > 0
}

// bounds tell which candidates are in no plan that is better than the best.
type bounds struct {
	// from are, by class, the priorities from which a single victim does too much harm.
	from [classes]int64
	// tie is the class and priority for which a single victim does as much harm and, on
	// this node, wastes no less. Of these, candidates created before since, in seconds,
	// are too old.
	tie      class
	priority int64
	since    int64
}

// boundless are bounds that exclude no candidate.
var boundless = bounds{
	from: [classes]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64},
	tie:  classes,
}

// bounds returns the bounds by a plan, without tie.
func (p *plan) bounds() bounds {
	b, h := boundless, &p.harm
	same := *h
	same.priority, same.slow, same.victims = harmless.priority, 0, harmless.victims
	for c := range classes {
		switch by := compareHarm(c.harm(), same); {
		case by > 0:
			b.from[c] = math.MinInt64
		case by == 0 && h.victims == 0:
			b.from[c] = h.priority
		case by == 0:
			b.from[c] = h.priority + 1
		}
	}
	return b
}

// tighten applies the waste of the best plan, if that plan has one victim that harms by
// its priority alone. A set of several does more harm if one of them has the same
// priority, and a single victim wastes at least as much as the smallest pod.
func (sv *survey) tighten(best *plan) {
	h := &best.harm
	if h.victims != 1 || h.optedOut != 0 || h.violations != 0 || h.originators != 0 || h.slow != 0 {
		return
	}
	var least resources.Share
	for t, amount := range sv.digest.least {
		if share := sv.waste(t, amount); share.Compare(least) > 0 {
			least = share
		}
	}
	switch c := least.Compare(best.waste); {
	case c > 0:
		sv.bounds.from[plain] = h.priority
	case c == 0:
		sv.bounds.tie, sv.bounds.priority, sv.bounds.since = plain, h.priority, best.created[0].Unix()
	}
}

// exclude reports whether a victim of a class is in no better plan.
func (b *bounds) exclude(c class, priority, created int64) bool {
	return priority >= b.from[c] || c == b.tie && priority == b.priority && created < b.since
}

// classOf returns the class of a pod in the current state of the budgets.
func (s *scene) classOf(e *entry) class {
	switch {
	case e.budget == noBudget || e.kind == optedOut:
		return e.kind
	case e.budget == manyBudgets:
		if e.pod.Violates(s.world.Budgets) {
			return violator
		}
	case s.world.Budgets[e.budget] <= 0:
		return violator
	}
	return e.kind
}

func (c *candidate) frees(g *goal) int64 { return frees(c.request, c.route.lca, c.onNode, g) }

// survey is a node with what the asker lacks there and the pods that may be preempted.
type survey struct {
	*stance
	node *Node
	// goals is what must be freed.
	goals      []goal
	candidates []candidate
	digest     *digest
	bounds     bounds
	least      []int64
}

// look surveys a node. The survey is valid until the next call. With everything, for
// obstacles that are not amounts, every pod helps. Otherwise pods that are in no plan
// better than the best so far are omitted.
func (pl *planner) look(n *Node, everything bool) *survey {
	sv := &pl.survey
	sv.node, sv.digest, sv.bounds = n, n.read(), boundless
	sv.goals = pl.goals(sv.goals[:0], n)
	sv.stance = pl.stanceFor(sv.goals)
	if best := pl.toBeat(); best != nil && !everything {
		sv.bounds = best.bounds()
		sv.tighten(best)
	}
	sv.candidates = sv.gather(sv.candidates[:0], everything, pl.tally())
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
//
// A pod that the laws allow uses a contested type (law 5). So it always helps if the node
// lacks all contested types.
func (sv *survey) gather(to []candidate, everything bool, rejected *[verdicts]int) []candidate {
	d := sv.digest
	everything = everything || len(sv.over) == 0 && len(sv.goals) > 0
	from := 0
	for _, run := range d.runs {
		first, end := from, int(run.to)
		from = end
		if run.leaf == queues.NoQueue {
			rejected[byForeign] += end - first
			continue
		}
		o := sv.outlook(run.leaf)
		o.met = true
		if o.all != mayGo && run.protected == 0 {
			rejected[o.all] += end - first
			continue
		}
		for i := first; i < end; i++ {
			e, request := &d.entries[i], d.request(i)
			why := sv.judge(e, request, o)
			if why == mayGo && !everything && !helps(request, o.route.lca, true, sv.goals) {
				why = byNeed
			}
			if why == byLaw6 {
				sv.keep(e, o.route, sv.node)
			}
			if why != mayGo {
				rejected[why]++
				continue
			}
			priority := o.lift.apply(int64(e.priority))
			if sv.bounds.exclude(e.kind, priority, e.created) {
				continue
			}
			class := e.kind
			if e.budget != noBudget {
				if class = sv.classOf(e); sv.bounds.exclude(class, priority, e.created) {
					continue
				}
			}
			to = append(to, candidate{e, request, o.route, sv.node, priority, class, true})
		}
	}
	return to
}

// helps reports whether a victim frees an amount that is needed.
func helps(request Amounts, lca int, onNode bool, goals []goal) bool {
	for i := range goals {
		if frees(request, lca, onNode, &goals[i]) > 0 {
			return true
		}
	}
	return false
}

// byHarm orders candidates: the least harm first, among equal harm the largest, then the
// youngest. Equivalent candidates are neighbours. The order of the world's types has no
// influence.
func (s *scene) byHarm(a, b *candidate) int {
	switch {
	case a.class != b.class:
		return cmp.Compare(a.class, b.class)
	case a.priority != b.priority:
		return cmp.Compare(a.priority, b.priority)
	case a.slow != b.slow:
		return cmp.Compare(rankOf(a.slow), rankOf(b.slow))
	}
	for _, t := range s.byName {
		if c := cmp.Compare(b.request.at(t), a.request.at(t)); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(rankOf(a.pod.Originator), rankOf(b.pod.Originator)),
		slices.Compare(a.pod.Budgets, b.pod.Budgets),
		cmp.Compare(a.route.leaf.Path, b.route.leaf.Path),
		cmp.Compare(rankOf(b.onNode), rankOf(a.onNode)),
		b.pod.Created.Compare(a.pod.Created),
		cmp.Compare(a.pod.UID, b.pod.UID),
	)
}

// alike reports whether no criterion before creation distinguishes two candidates: then
// taking the younger is as good as taking the other.
func alike(a, b *candidate) bool {
	return a.route == b.route && a.onNode == b.onNode && a.priority == b.priority && a.slow == b.slow &&
		a.pod.OptedOut == b.pod.OptedOut && a.pod.Originator == b.pod.Originator &&
		slices.Equal(a.request, b.request) && slices.Equal(a.pod.Budgets, b.pod.Budgets)
}

func rankOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
