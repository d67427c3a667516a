package search

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// nodeSearch grows sets of victims for one node. It tracks what a set has left to free and
// may still take, and undoes its changes when it backtracks. It reuses its lists for all
// nodes.
type nodeSearch struct {
	*survey
	candidates []candidate // sorted by harm
	// groups are the ends of runs of equivalent candidates.
	groups []int
	// left is what remains to be freed, by goal. A goal is reached at 0 or below.
	left []int64
	// budget is what may still be taken, by account and type (laws 2a, 2c); nil for accounts
	// without candidates.
	budget [][]int64
	// loss is the increase of existing shortages of guarantees, by type (law 2b); losing
	// is the number of victims that caused one.
	loss   []int64
	losing int
	// allowed are the disruptions left, by PodDisruptionBudget. several is the number of
	// taken victims that more than one budget covers.
	allowed []int64
	several int
	remaining
	freed []int64 // on the node, by type

	taken []candidate
	harms []harm // before each taken victim
	harm  harm
	best  *plan // to beat; nil for any
	found bool  // best was found in this search
	trial plan
	visitLimit
	// blocked is true once law 2 stopped a set that did not free enough yet.
	blocked bool
}

// visitLimit ends a search that takes too long.
type visitLimit struct {
	visits int
	most   int // limit of visits
	cut    bool
}

// remaining is what the groups from one on can add to a set, by group.
type remaining struct {
	// supply is how much they free for each goal, and largest how much one of their
	// candidates does. smallest is the least that one of them frees on the node, by type.
	supply, largest, smallest [][]int64
	// youngest is the creation time of their youngest candidate.
	youngest []time.Time
}

// start prepares the search among the candidates and sorts them.
func (s *nodeSearch) start(sv *survey, candidates []candidate, toBeat *plan) {
	s.survey, s.candidates, s.best, s.found = sv, candidates, toBeat, false
	s.visits, s.cut, s.blocked = 0, false, false
	s.taken, s.harms, s.harm, s.several = s.taken[:0], s.harms[:0], harmless, 0
	slices.SortFunc(candidates, func(a, b candidate) int { return s.byHarm(&a, &b) })
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
	s.allowed = append(s.allowed[:0], sv.snapshot.Budgets...)
	s.freed = append(s.freed[:0], make([]int64, len(sv.snapshot.Types))...)
	s.loss, s.losing = append(s.loss[:0], s.freed...), 0
	s.fillBudget()
	s.fillSupply()
}

// fillBudget sets what may be taken from each queue that a candidate counts in.
func (s *nodeSearch) fillBudget() {
	s.budget = grown(s.budget, len(s.accounts)-1)
	for i := range s.candidates {
		for _, a := range s.candidates[i].path.counts {
			s.budget[a.index] = append(s.budget[a.index][:0], s.takableFrom(a)...)
		}
	}
}

// group returns the i-th run of equivalent candidates.
func (s *nodeSearch) group(i int) []candidate {
	start := 0
	if i > 0 {
		start = s.groups[i-1]
	}
	return s.candidates[start:s.groups[i]]
}

// reached reports whether all goals are reached.
func (s *nodeSearch) reached() bool {
	for _, left := range s.left {
		if left > 0 {
			return false
		}
	}
	return true
}

// lawful reports whether one more victim may be taken (law 2).
func (s *nodeSearch) lawful(c *candidate) bool {
	for _, a := range c.path.counts {
		budget := s.budget[a.index]
		for t, amount := range c.request {
			if amount > 0 && budget[t] < amount {
				s.noteTight(c)
				return false
			}
		}
	}
	short := s.leafVerdict(c.Pod.Leaf).short
	if short == nil && s.losing == 0 {
		return true
	}
	lca := c.path.lca
	for i := range s.taken {
		lca = max(lca, s.taken[i].path.lca)
	}
	for t, loss := range s.loss {
		if short != nil {
			loss += short[t] * c.request.At(t)
		}
		if loss > s.gain[lca][t] {
			return false
		}
	}
	return true
}

// noteTight records which queues stopped a victim.
func (s *nodeSearch) noteTight(c *candidate) {
	for _, a := range c.path.counts {
		for t, amount := range c.request {
			a.tight[t] = a.tight[t] || amount > 0 && s.budget[a.index][t] < amount
		}
	}
}

// add takes a victim.
func (s *nodeSearch) add(c *candidate) {
	s.harms = append(s.harms, s.harm)
	s.harm.add(c)
	if c.Budget != planner.NoBudget && c.Pod.Consume(s.allowed) {
		s.harm.violations++
	}
	s.taken = append(s.taken, *c)
	if c.Budget == planner.ManyBudgets {
		s.several++
	}
	if s.several > 0 { // then their order matters
		s.harm.violations = s.violations(s.taken)
	}
	s.apply(c, 1)
}

// drop removes the last victim.
func (s *nodeSearch) drop() {
	last := len(s.taken) - 1
	c := s.taken[last]
	s.taken = s.taken[:last]
	s.harm, s.harms = s.harms[last], s.harms[:last]
	if c.Budget == planner.ManyBudgets {
		s.several--
	}
	for _, b := range c.Pod.Budgets {
		s.allowed[b]++
	}
	s.apply(&c, -1)
}

// apply subtracts a victim from what is left and from what may be taken, or adds it again if
// sign is -1.
func (s *nodeSearch) apply(c *candidate, sign int64) {
	for g := range s.goals {
		s.left[g] -= sign * c.frees(&s.goals[g])
	}
	if c.onNode {
		for t, amount := range c.request {
			s.freed[t] += sign * amount
		}
	}
	if short := s.leafVerdict(c.Pod.Leaf).short; short != nil {
		s.losing += int(sign)
		for t, amount := range c.request {
			s.loss[t] += sign * short[t] * amount
		}
	}
	for _, a := range c.path.counts {
		budget := s.budget[a.index]
		for t, amount := range c.request {
			if budget[t] != unbounded {
				budget[t] -= sign * amount
			}
		}
	}
}

// searchFrom considers all sets that add victims of the groups from i on.
func (s *nodeSearch) searchFrom(i int) {
	if s.reached() {
		s.keepIfBest()
		return
	}
	if i == len(s.groups) || s.isPruned(i) {
		return
	}
	if s.visits++; s.visits > s.most {
		s.cut = true
		return
	}
	before := len(s.taken)
	s.fill(s.group(i))
	// Sets with the most victims of the group come first: the group is early, so its
	// victims do little harm.
	for {
		if !s.worse() {
			s.searchFrom(i + 1)
		}
		if len(s.taken) == before {
			return
		}
		s.drop()
	}
}

// fill takes as many of a group as are lawful, needed, and not too harmful.
func (s *nodeSearch) fill(group []candidate) {
	for n := 0; n < len(group) && !s.reached() && !s.worse(); n++ {
		if !s.lawful(&group[n]) {
			s.blocked = true
			return
		}
		s.add(&group[n])
	}
}

// worse reports whether the set does more harm than the best.
func (s *nodeSearch) worse() bool { return s.best != nil && compareHarm(s.harm, s.best.harm) > 0 }

// keepIfBest makes the set the best if it is better.
func (s *nodeSearch) keepIfBest() {
	if s.worse() {
		return
	}
	s.trial.set(s.survey, s.taken, s.harm)
	if s.best == nil || comparePlans(&s.trial, s.best) < 0 {
		s.best, s.found = s.trial.clone(), true
	}
}
