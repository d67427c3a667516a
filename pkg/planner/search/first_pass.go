package search

import (
	"math"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// firstPass passes over every node once. It finds plans with at most one victim, and a lower
// bound of the harm of larger sets.
func (pl *planning) firstPass() {
	for i, n := range pl.snapshot.Nodes {
		if best := pl.toBeat(); best != nil && len(best.victims) == 0 {
			break // nodes without victims differ by name only
		}
		if slices.Contains(pl.asked, n) {
			continue
		}
		pl.counting = i >= pl.counted
		pl.firstPassNode(n)
		pl.counted = max(pl.counted, i+1)
	}
	pl.counting = false
}

// firstPassNode is firstPass for one node.
func (pl *planning) firstPassNode(n *planner.Node) {
	sv := pl.surveyNode(n, false)
	if pl.params.Barred != nil && pl.mayHavePlan(sv) && pl.params.Barred(n.Name) {
		return
	}
	if len(sv.goals) == 0 {
		p := &plan{}
		p.set(sv, nil, harmless)
		pl.add(p)
		return
	}
	pl.single(sv)
	h, ok := pl.leastHarm(sv)
	if !ok {
		pl.tooFew = pl.tooFew || len(sv.candidates) > 0
		return
	}
	h.victims = max(h.victims, 2)
	best := pl.toBeat()
	if best == nil && !pl.spent() || pl.tried < initialPlans && best != nil && compareHarm(h, best.harm) < 0 {
		pl.tried++
		pl.addInitial(sv)
		best = pl.toBeat()
	}
	if best != nil && compareHarm(h, best.harm) > 0 {
		return
	}
	v := visit{node: n, bound: h, youngest: math.MaxInt64}
	if len(pl.over) == 0 {
		v.waste, v.youngest = sv.minWaste(&h)
	}
	if best == nil || !v.cannotBeat(best) {
		if pl.later == nil {
			pl.later = make([]visit, 0, len(pl.snapshot.Nodes))
		}
		pl.later = append(pl.later, v)
	}
}

// mayHavePlan reports whether a node may have a plan. The filters need not run for other
// nodes.
func (pl *planning) mayHavePlan(sv *survey) bool {
	switch {
	case len(sv.goals) == 0:
		return true
	case len(pl.over) == 0:
		return len(sv.candidates) > 0
	}
	return pl.poolFor(sv).enough
}

// spent reports whether enough nodes were tried with a large pool.
func (pl *planning) spent() bool { return pl.poolSize == largePool && pl.tried >= mostInitial }

// cannotBeat reports whether no plan with several victims of the node is better than the
// best.
func (v *visit) cannotBeat(best *plan) bool {
	c := compareHarm(v.bound, best.harm)
	if c == 0 {
		c = v.waste.Compare(best.waste)
	}
	return c > 0 || c == 0 && v.youngest < best.created[0].Unix()
}

// leastHarm returns a lower bound of the harm of any plan with victims on the node.
func (pl *planning) leastHarm(sv *survey) (harm, bool) {
	h := harm{priority: math.MinInt64, victims: 1}
	if onNode := sv.goals[:len(sv.goals)-len(pl.over)]; len(onNode) > 0 {
		var ok bool
		if h, ok = lowerBound(sv.candidates, onNode); !ok {
			return h, false
		}
	}
	if len(pl.over) > 0 {
		p := pl.poolFor(sv)
		if compareHarm(p.bound, h) > 0 {
			h = p.bound
		}
		pl.blocked = pl.blocked || p.blocked
		return h, p.enough
	}
	return h, true
}

// single finds the best plan with one victim.
func (pl *planning) single(sv *survey) {
	for i := range sv.candidates {
		pl.try(sv, &sv.candidates[i])
	}
	if len(pl.over) == 0 || len(sv.goals) > len(pl.over) {
		return
	}
	p := pl.poolFor(sv)
	for i := range p.candidates {
		if c := &p.candidates[i]; c.node != sv.node {
			pl.try(sv, c)
		}
	}
}

// try adds the plan with this victim alone, if it frees enough and is good enough.
func (pl *planning) try(sv *survey, c *candidate) {
	for g := range sv.goals {
		if c.frees(&sv.goals[g]) < sv.goals[g].amount {
			return
		}
	}
	h := harmless
	h.add(c)
	if c.Budget != planner.NoBudget && c.Pod.Violates(pl.snapshot.Budgets) {
		h.violations = 1
	}
	best := pl.toBeat()
	if best != nil && compareHarm(h, best.harm) > 0 {
		return // before the trial is filled, which takes longer
	}
	pl.trial.set(sv, []candidate{*c}, h)
	if best == nil || comparePlans(&pl.trial, best) < 0 {
		pl.add(pl.trial.clone())
	}
}
