package victims

import "slices"

// replay takes these victims and no others.
func (s *search) replay(victims []candidate) {
	for len(s.taken) > 0 {
		s.drop()
	}
	for i := range victims {
		s.add(&victims[i])
	}
}

// spare gives back every victim that was taken and need not go, the most harmful
// first, and returns the rest. The set must make room and pass; passes judges it
// beyond that. Whole runs of victims are tried before their halves: what has to
// go are mostly few.
func (s *search) spare(passes func([]candidate) bool) []candidate {
	all := slices.Clone(s.taken)
	stays := make([]bool, len(all))
	rest := func() []candidate {
		var out []candidate
		for i := range all {
			if !stays[i] {
				out = append(out, all[i])
			}
		}
		return out
	}
	move := func(from, to int, stay bool, sign int64) {
		for i := from; i < to; i++ {
			stays[i] = stay
			s.apply(&all[i], sign)
		}
	}
	var try func(from, to int)
	try = func(from, to int) {
		move(from, to, true, -1)
		if s.reached() && passes(rest()) {
			return
		}
		move(from, to, false, 1)
		if to-from > 1 {
			half := (from + to) / 2
			try(half, to)
			try(from, half)
		}
	}
	try(0, len(all))
	return rest()
}

// planOf is the plan with these victims.
func (s *search) planOf(victims []candidate) *plan {
	allowed, h := slices.Clone(s.world.Budgets), harmless
	for i := range victims {
		h.add(&victims[i], allowed)
	}
	p := &plan{}
	p.set(s.survey, victims, h)
	return p
}
