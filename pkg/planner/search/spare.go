package search

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// clear removes all victims.
func (s *nodeSearch) clear() {
	for len(s.taken) > 0 {
		s.drop()
	}
}

// initialSolution takes lawful candidates, the least harmful first, and makes the set the
// best if it is better. The search then need not visit worse sets.
func (s *nodeSearch) initialSolution() {
	for i := 0; i < len(s.candidates) && !s.reached() && !s.worse(); i++ {
		if s.lawful(&s.candidates[i]) {
			s.add(&s.candidates[i])
		}
	}
	if s.reached() && !s.worse() {
		if p := s.planOf(s.spare(always)); s.best == nil || comparePlans(p, s.best) < 0 {
			s.best, s.found = p, true
		}
	}
	s.clear()
}

// takeLargest takes lawful candidates, those that free most for a goal first, until all goals
// are reached. It reports whether they are. It is for searches that were cut off before
// they found a set.
func (s *nodeSearch) takeLargest(goal int) bool {
	s.clear()
	order := slices.Clone(s.candidates)
	slices.SortStableFunc(order, func(a, b candidate) int {
		return cmp.Compare(b.frees(&s.goals[goal]), a.frees(&s.goals[goal]))
	})
	for i := 0; i < len(order) && !s.reached(); i++ {
		if s.lawful(&order[i]) {
			s.add(&order[i])
		}
	}
	slices.SortFunc(s.taken, func(a, b candidate) int { return s.byHarm(&a, &b) })
	return s.reached()
}

// spare removes every victim that is not needed, the most harmful first, and returns the
// rest. The set must reach the goals and pass; passes checks what goes beyond the goals.
func (s *nodeSearch) spare(passes func([]candidate) bool) []candidate {
	kept := planner.Spare(s.taken, s.apply, s.reached, passes)
	for i := range kept {
		s.apply(&kept[i], -1)
	}
	for i := range s.taken { // restored for the caller, which may remove all
		s.apply(&s.taken[i], 1)
	}
	return kept
}

// planOf returns the plan with these victims.
func (s *nodeSearch) planOf(victims []candidate) *plan {
	h := harmless
	for i := range victims {
		h.add(&victims[i])
	}
	h.violations = s.violations(victims)
	p := &plan{}
	p.set(s.survey, victims, h)
	return p
}

func always([]candidate) bool { return true }
