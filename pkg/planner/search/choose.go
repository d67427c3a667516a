package search

import "github.com/paddock-scheduler/paddock/pkg/planner"

// choose takes the best plan that the real filters accept. It returns false if a plan
// that was dropped might be better than those that are left.
func (pl *planning) choose() (planner.Decision, bool) {
	var last *plan // none of the dropped plans is better than this one
	if pl.params.Fits != nil {
		pl.More = pl.toBeat() != nil
		if pl.mostPlans < pl.params.MaxFits {
			last = pl.toBeat()
		}
	}
	for len(pl.plans) > 0 {
		best := pl.plans[0]
		if last != nil && comparePlans(best, last) > 0 {
			return planner.Decision{}, false
		}
		if best.checked || pl.params.Fits == nil {
			return pl.accept(best), true
		}
		if pl.FitsCalls >= pl.params.MaxFits {
			pl.exhaustive, pl.More = false, true
			break
		}
		pl.plans = pl.plans[1:]
		pl.asked = append(pl.asked, best.node)
		switch pl.fit(best.node, best.victims) {
		case planner.Passes:
			return pl.accept(best), true
		case planner.Never:
			pl.Unfit = append(pl.Unfit, best.node.Name)
		case planner.Fails:
			if wide := pl.widen(best.node); wide != nil {
				pl.add(wide)
			}
		}
	}
	if last != nil && pl.FitsCalls < pl.params.MaxFits {
		return planner.Decision{}, false
	}
	for _, p := range pl.plans {
		if p.checked {
			return pl.accept(p), true
		}
	}
	return pl.refuse(""), true
}

// fit runs the real filters.
func (pl *planning) fit(n *planner.Node, victims []candidate) planner.Fit {
	pl.FitsCalls++
	var without []*planner.Pod
	for i := range victims {
		if victims[i].onNode {
			without = append(without, victims[i].Pod)
		}
	}
	return pl.params.Fits(n.Name, without)
}

// widen handles obstacles that are not amounts, such as ports or affinity. It removes all
// lawful candidates. If the filters then accept, it puts back every candidate that need
// not go, the most harmful first. It returns nil if the limit on filter calls did not
// suffice to show that each victim is needed.
func (pl *planning) widen(n *planner.Node) *plan {
	pl.exhaustive = false
	sv := pl.surveyNode(n, true)
	pl.collected = append(pl.collected[:0], sv.candidates...)
	if len(pl.over) > 0 {
		pl.collected = pl.poolFor(sv).elsewhere(pl.collected, n)
	}
	s := &pl.search
	s.start(sv, pl.collected, nil)
	for i := range s.candidates {
		if c := &s.candidates[i]; s.lawful(c) {
			s.add(c)
		}
	}
	known := true
	passes := func(victims []candidate) bool {
		if pl.FitsCalls == pl.params.MaxFits {
			known = false
			return false
		}
		return pl.fit(n, victims) == planner.Passes
	}
	if len(s.taken) == 0 || !s.reached() || !passes(s.taken) {
		if known {
			pl.Unfit = append(pl.Unfit, n.Name)
		}
		return nil
	}
	kept := s.spare(passes)
	if !known {
		return nil
	}
	p := s.planOf(kept)
	p.checked = true
	return p
}
