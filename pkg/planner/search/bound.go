package search

import (
	"math"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// fillSupply computes what the groups can free, from the last to the first.
func (s *nodeSearch) fillSupply() {
	n := len(s.groups)
	s.supply, s.largest, s.smallest = grown(s.supply, n), grown(s.largest, n), grown(s.smallest, n)
	s.supply[n] = append(s.supply[n][:0], make([]int64, len(s.goals))...)
	s.largest[n] = append(s.largest[n][:0], make([]int64, len(s.goals))...)
	s.youngest = grown(s.youngest, n)
	s.youngest[n] = time.Time{}
	s.smallest[n] = s.smallest[n][:0]
	for range s.snapshot.Types {
		s.smallest[n] = append(s.smallest[n], math.MaxInt64)
	}
	for i := n - 1; i >= 0; i-- {
		s.supply[i] = append(s.supply[i][:0], s.supply[i+1]...)
		s.largest[i] = append(s.largest[i][:0], s.largest[i+1]...)
		s.smallest[i] = append(s.smallest[i][:0], s.smallest[i+1]...)
		group := s.group(i)
		s.youngest[i] = younger(s.youngest[i+1], group[0].Pod.Created)
		for g := range s.goals {
			amount := group[0].frees(&s.goals[g])
			s.supply[i][g] = planner.Plus(s.supply[i][g], amount*int64(len(group)))
			s.largest[i][g] = max(s.largest[i][g], amount)
		}
		for t, least := range s.smallest[i] {
			if s.smallest[i][t] = 0; group[0].onNode {
				s.smallest[i][t] = min(least, group[0].request.At(t))
			}
		}
	}
}

// isPruned reports whether the groups from i on cannot complete the set, or only to a set
// that is not better than the best.
func (s *nodeSearch) isPruned(i int) bool {
	more := 1
	for g, left := range s.left {
		if left > s.supply[i][g] {
			return true
		}
		if left > 0 {
			more = max(more, leastVictims(left, s.largest[i][g]))
		}
	}
	if s.best == nil {
		return false
	}
	h := s.harm
	h.victims += more
	h.addClass(s.group(i)[0].rank, more) // the following groups are of this class or a worse one
	c := compareHarm(h, s.best.harm)
	return c > 0 || c == 0 && s.wasteful(i, int64(more))
}

// wasteful reports whether the set, with some more victims of the groups from i on,
// wastes more than the best, or wastes as much and is older.
func (s *nodeSearch) wasteful(i int, more int64) bool {
	var waste resources.Share
	for t, freed := range s.freed {
		waste = waste.Max(s.waste(t, freed+more*s.smallest[i][t]))
	}
	if c := waste.Compare(s.best.waste); c != 0 {
		return c > 0
	}
	youngest := s.youngest[i]
	for k := range s.taken {
		youngest = younger(youngest, s.taken[k].Pod.Created)
	}
	return len(s.best.created) > 0 && s.best.created[0].After(youngest) // its youngest victim
}

func younger(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
