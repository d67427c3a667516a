package search

import (
	"math"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// lowerBound returns a lower bound of the harm of any set of the candidates, or false if all
// of them together do not reach the goals.
func lowerBound(from []candidate, goals []goal) (harm, bool) {
	worst := planner.ClassPlain
	for g := range goals {
		var free [planner.Classes]int64
		for i := range from {
			c := &from[i]
			free[c.rank] = planner.Plus(free[c.rank], c.frees(&goals[g]))
		}
		sum := free[planner.ClassPlain]
		for class := planner.ClassPlain; sum < goals[g].amount; sum = planner.Plus(sum, free[class]) {
			if class++; class == planner.Classes {
				return harm{}, false
			}
			worst = max(worst, class)
		}
	}
	h := harmOf(worst)
	if worst == planner.ClassPlain {
		h.priority = lowest(from, goals)
	}
	h.victims = fewest(from, goals, h)
	return h, true
}

// lowest returns the lowest priority up to which the plain candidates cover the goals,
// provided that all of them do.
func lowest(from []candidate, goals []goal) int64 {
	for p := int64(math.MinInt64); ; {
		next := int64(math.MaxInt64)
		for i := range from {
			if c := &from[i]; c.rank == planner.ClassPlain && c.priority > p {
				next = min(next, c.priority)
			}
		}
		p = next
		if p == math.MaxInt64 || cover(from, goals, p) {
			return p
		}
	}
}

// cover reports whether the plain candidates up to a priority free enough for every goal.
func cover(from []candidate, goals []goal, highest int64) bool {
	for g := range goals {
		sum := int64(0)
		for i := range from {
			if c := &from[i]; c.rank == planner.ClassPlain && c.priority <= highest {
				sum = planner.Plus(sum, c.frees(&goals[g]))
			}
		}
		if sum < goals[g].amount {
			return false
		}
	}
	return true
}

// fewest returns the least number of victims of a set that does no more harm than h.
func fewest(from []candidate, goals []goal, h harm) int {
	least := 1
	for g := range goals {
		most := int64(0)
		for i := range from {
			c := &from[i]
			if h.priority == math.MinInt64 || c.rank == planner.ClassPlain && c.priority <= h.priority {
				most = max(most, c.frees(&goals[g]))
			}
		}
		if most > 0 {
			least = max(least, leastVictims(goals[g].amount, most))
		}
	}
	return least
}

// leastVictims returns how many victims an amount takes at least, if each frees at most
// most. amount and most are at least 1.
func leastVictims(amount, most int64) int { return int(min((amount-1)/most+1, math.MaxInt32)) }

// minWaste returns the least amount beyond need that a set of candidates with exactly this
// harm frees, and the second at which the youngest of them was created.
func (sv *survey) minWaste(h *harm) (waste resources.Share, youngest int64) {
	sv.least = sv.least[:0]
	for range sv.snapshot.Types {
		sv.least = append(sv.least, math.MaxInt64)
	}
	youngest = math.MinInt64
	for i := range sv.candidates {
		c := &sv.candidates[i]
		if c.exceeds(h, h.victims) {
			continue
		}
		youngest = max(youngest, c.Created)
		for t := range sv.least {
			sv.least[t] = min(sv.least[t], c.request.At(t))
		}
	}
	for t, least := range sv.least {
		if least == math.MaxInt64 {
			continue // all candidates do more harm, or each frees an unlimited amount
		}
		waste = waste.Max(sv.waste(t, least*int64(h.victims)))
	}
	return waste, youngest
}
