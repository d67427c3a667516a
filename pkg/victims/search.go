package victims

import (
	"math"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// search grows sets of victims for one node. It holds what a set has left to
// free and may still take, and undoes what it did on the way back. Its lists
// are reused from node to node.
type search struct {
	*survey
	candidates []candidate // sorted by harm
	// groups are the ends of runs of alike candidates.
	groups []int
	// left is what is still to be freed, by goal. A goal is reached at 0 or below.
	left []int64
	// budget is what may still be taken, by account and type (law 2); nil where
	// no candidate counts.
	budget [][]int64
	// loss is by how much queues became shorter of what they are short of already,
	// by type (law 2); losing is the number of victims that did so.
	loss   []int64
	losing int
	// allowed are the disruptions left, by PodDisruptionBudget.
	allowed []int64
	// supply is how much the groups from one on could free for each goal,
	// largest how much one of their candidates could. smallest is how much one
	// of them frees at least on the node, by type.
	supply, largest, smallest [][]int64
	// youngest is the creation of the youngest in the groups from one on.
	youngest []time.Time
	freed    []int64 // on the node, by type

	taken  []candidate
	harms  []harm // before each that was taken
	harm   harm
	best   *plan // to beat; nil for any
	found  bool  // best was found here
	trial  plan
	visits int
	most   int // bound of visits
	cut    bool
	// blocked is true once law 2 stopped a set that did not make room yet.
	blocked bool
}

// start prepares the search among the candidates, which it sorts.
func (s *search) start(sv *survey, candidates []candidate, toBeat *plan) {
	s.survey, s.candidates, s.best, s.found = sv, candidates, toBeat, false
	s.visits, s.cut, s.blocked = 0, false, false
	s.taken, s.harms, s.harm = s.taken[:0], s.harms[:0], harmless
	slices.SortFunc(candidates, func(a, b candidate) int { return byHarm(&a, &b) })
	s.groups = s.groups[:0]
	for i := range candidates {
		if i > 0 && !alike(&candidates[i-1], &candidates[i]) {
			s.groups = append(s.groups, i)
		}
	}
	if len(candidates) > 0 {
		s.groups = append(s.groups, len(candidates))
	}
	s.left = s.left[:0]
	for _, g := range sv.goals {
		s.left = append(s.left, g.amount)
	}
	s.allowed = append(s.allowed[:0], sv.world.Budgets...)
	s.freed = append(s.freed[:0], make([]int64, len(sv.world.Types))...)
	s.loss, s.losing = append(s.loss[:0], s.freed...), 0
	s.fillBudget()
	s.fillSupply()
}

func (s *search) fillBudget() {
	s.budget = grown(s.budget, len(s.accounts)-1)
	for i := range s.candidates {
		for _, a := range s.candidates[i].route.counts {
			s.budget[a.index] = append(s.budget[a.index][:0], s.take(a)...)
		}
	}
}

func (s *search) fillSupply() {
	n := len(s.groups)
	s.supply, s.largest, s.smallest = grown(s.supply, n), grown(s.largest, n), grown(s.smallest, n)
	s.supply[n] = append(s.supply[n][:0], make([]int64, len(s.goals))...)
	s.largest[n] = append(s.largest[n][:0], make([]int64, len(s.goals))...)
	s.youngest = grown(s.youngest, n)
	s.youngest[n] = time.Time{}
	s.smallest[n] = s.smallest[n][:0]
	for range s.world.Types {
		s.smallest[n] = append(s.smallest[n], math.MaxInt64)
	}
	for i := n - 1; i >= 0; i-- {
		s.supply[i] = append(s.supply[i][:0], s.supply[i+1]...)
		s.largest[i] = append(s.largest[i][:0], s.largest[i+1]...)
		s.smallest[i] = append(s.smallest[i][:0], s.smallest[i+1]...)
		group := s.group(i)
		s.youngest[i] = younger(s.youngest[i+1], group[0].pod.Created)
		for g := range s.goals {
			amount := group[0].frees(&s.goals[g])
			s.supply[i][g] = plus(s.supply[i][g], amount*int64(len(group)))
			s.largest[i][g] = max(s.largest[i][g], amount)
		}
		for t, least := range s.smallest[i] {
			if s.smallest[i][t] = 0; group[0].onNode {
				s.smallest[i][t] = min(least, group[0].pod.Request.at(t))
			}
		}
	}
}

func (s *search) group(i int) []candidate {
	start := 0
	if i > 0 {
		start = s.groups[i-1]
	}
	return s.candidates[start:s.groups[i]]
}

// reached tells whether everything is freed.
func (s *search) reached() bool {
	for _, left := range s.left {
		if left > 0 {
			return false
		}
	}
	return true
}

// hopeless tells whether the groups from i on cannot complete the set, or only
// to one that is not better than the best.
func (s *search) hopeless(i int) bool {
	more := 1
	for g, left := range s.left {
		if left > s.supply[i][g] {
			return true
		}
		if left > 0 {
			more = max(more, int((left-1)/s.largest[i][g])+1)
		}
	}
	if s.best == nil {
		return false
	}
	h := s.harm
	h.victims += more
	switch s.group(i)[0].class { // those that follow are of this class or a worse one
	case optedOut:
		h.optedOut += more
	case violator:
		h.violations += int64(more)
	case originator:
		h.originators += more
	}
	c := compareHarm(h, s.best.harm)
	return c > 0 || c == 0 && s.wasteful(i, int64(more))
}

// wasteful tells whether the set, with some more victims of the groups from i
// on, wastes more than the best, or as much and is older.
func (s *search) wasteful(i int, more int64) bool {
	var waste resources.Share
	for t, freed := range s.freed {
		if share := s.waste(t, freed+more*s.smallest[i][t]); share.Compare(waste) > 0 {
			waste = share
		}
	}
	if c := waste.Compare(s.best.waste); c != 0 {
		return c > 0
	}
	youngest := s.youngest[i]
	for k := range s.taken {
		youngest = younger(youngest, s.taken[k].pod.Created)
	}
	return s.best.youngerThan(youngest)
}

func younger(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lawful tells whether one more victim may be taken (law 2).
func (s *search) lawful(c *candidate) bool {
	for _, a := range c.route.counts {
		budget := s.budget[a.index]
		for t, amount := range c.pod.Request {
			if amount > 0 && budget[t] < amount {
				return false
			}
		}
	}
	short := s.outlook(c.route).short
	if short == nil && s.losing == 0 {
		return true
	}
	lca := c.route.lca
	for i := range s.taken {
		lca = max(lca, s.taken[i].route.lca)
	}
	for t, loss := range s.loss {
		if short != nil {
			loss += short[t] * c.pod.Request.at(t)
		}
		if loss > s.gain[lca][t] {
			return false
		}
	}
	return true
}

// add takes a victim.
func (s *search) add(c *candidate) {
	s.harms = append(s.harms, s.harm)
	s.harm.add(c, s.allowed)
	s.taken = append(s.taken, *c)
	s.apply(c, 1)
}

// drop gives the last victim back.
func (s *search) drop() {
	last := len(s.taken) - 1
	c := s.taken[last]
	s.taken = s.taken[:last]
	s.harm, s.harms = s.harms[last], s.harms[:last]
	for _, b := range c.pod.Budgets {
		s.allowed[b]++
	}
	s.apply(&c, -1)
}

// apply takes a victim off what is left and what may be taken.
func (s *search) apply(c *candidate, sign int64) {
	for g := range s.goals {
		s.left[g] -= sign * c.frees(&s.goals[g])
	}
	if c.onNode {
		for t, amount := range c.pod.Request {
			s.freed[t] += sign * amount
		}
	}
	if short := s.outlook(c.route).short; short != nil {
		s.losing += int(sign)
		for t, amount := range c.pod.Request {
			s.loss[t] += sign * short[t] * amount
		}
	}
	for _, a := range c.route.counts {
		budget := s.budget[a.index]
		for t, amount := range c.pod.Request {
			if budget[t] != unbounded {
				budget[t] -= sign * amount
			}
		}
	}
}

// from weighs all sets that add victims of the groups from i on.
func (s *search) from(i int) {
	if s.reached() {
		s.weigh()
		return
	}
	if i == len(s.groups) || s.hopeless(i) {
		return
	}
	if s.visits++; s.visits > s.most {
		s.cut = true
		return
	}
	before := len(s.taken)
	group := s.group(i)
	for n := 0; n < len(group) && !s.reached(); n++ {
		if !s.lawful(&group[n]) {
			s.blocked = true
			break
		}
		s.add(&group[n])
		if s.worse() {
			break
		}
	}
	// The most victims of the group first: it comes early, so it does little harm.
	for {
		if !s.worse() {
			s.from(i + 1)
		}
		if len(s.taken) == before {
			return
		}
		s.drop()
	}
}

// worse tells whether the set does more harm than the best.
func (s *search) worse() bool { return s.best != nil && compareHarm(s.harm, s.best.harm) > 0 }

// weigh compares the set with the best so far.
func (s *search) weigh() {
	if s.worse() || s.best != nil && compareHarm(s.harm, s.best.harm) == 0 && s.wastesMore(s.freed, s.best.waste) {
		return
	}
	s.trial.set(s.survey, s.taken, s.harm)
	if s.best == nil || comparePlans(&s.trial, s.best) < 0 {
		s.best, s.found = s.trial.clone(), true
	}
}

// replay takes these victims and no others.
func (s *search) replay(victims []candidate) {
	for len(s.taken) > 0 {
		s.drop()
	}
	for i := range victims {
		s.add(&victims[i])
	}
}

// spare gives back every victim that need not go, the most harmful first, and
// returns the rest. The set must make room; passes judges it further.
func (s *search) spare(victims []candidate, passes func([]candidate) bool) []candidate {
	kept := slices.Clone(victims)
	for i := len(kept) - 1; i >= 0; i-- {
		c := kept[i]
		s.apply(&c, -1)
		fewer := slices.Delete(slices.Clone(kept), i, i+1)
		if s.reached() && passes(fewer) {
			kept = fewer
		} else {
			s.apply(&c, 1)
		}
	}
	return kept
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
