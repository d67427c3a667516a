package victims

import "math"

// search grows sets of victims for one node. It holds what a set has left to
// free and may still take, and undoes what it did on the way back.
type search struct {
	*exam
	kinds []*kind
	// left is what is still to be freed: on the node, and below each queue over
	// its max. A goal is reached at 0 or below.
	left []goal
	// budget is what may still be taken, by account and type (law 2).
	budget [][]int64
	// allowed are the disruptions left, by PodDisruptionBudget.
	allowed []int64
	// supply is, by kind, how much this and all later kinds could free for each goal.
	supply [][]int64

	taken  []*candidate
	harm   harm
	best   *plan
	visits int
	most   int // bound of visits
	cut    bool
}

// goal is an amount to be freed.
type goal struct {
	shortage
	depth int // of the queue below which it has to be freed; 0 for the node
}

func newSearch(e *exam, kinds []*kind, most int) *search {
	s := &search{exam: e, kinds: kinds, most: most, harm: harm{priority: math.MinInt64}}
	for _, n := range e.need {
		s.left = append(s.left, goal{n, 0})
	}
	for d, over := range e.over {
		for _, o := range over {
			s.left = append(s.left, goal{o, d})
		}
	}
	s.budget = make([][]int64, len(e.accounts))
	for _, k := range kinds {
		for _, a := range k.route.counts {
			if s.budget[a.index] == nil {
				s.budget[a.index] = e.takable(a, e.isIn)
			}
		}
	}
	s.allowed = append(s.allowed, e.world.Budgets...)
	s.supply = make([][]int64, len(kinds)+1)
	s.supply[len(kinds)] = make([]int64, len(s.left))
	for i := len(kinds) - 1; i >= 0; i-- {
		s.supply[i] = make([]int64, len(s.left))
		for g := range s.left {
			s.supply[i][g] = s.supply[i+1][g] + s.frees(kinds[i], g)*int64(len(kinds[i].pods))
		}
	}
	return s
}

// frees is how much one victim of a kind frees for a goal.
func (s *search) frees(k *kind, g int) int64 {
	goal := &s.left[g]
	if goal.depth == 0 && !k.onNode || goal.depth > k.route.lca {
		return 0
	}
	return k.pod.Request.at(goal.typ)
}

// reached tells whether everything is freed.
func (s *search) reached() bool {
	for g := range s.left {
		if s.left[g].amount > 0 {
			return false
		}
	}
	return true
}

// hopeless tells whether this and all later kinds together cannot free enough.
func (s *search) hopeless(i int) bool {
	for g := range s.left {
		if s.left[g].amount > s.supply[i][g] {
			return true
		}
	}
	return false
}

// lawful tells whether one more victim of a kind may be taken (law 2).
func (s *search) lawful(k *kind) bool {
	for _, a := range k.route.counts {
		budget := s.budget[a.index]
		for _, f := range k.all {
			if budget[f.typ] < f.amount {
				return false
			}
		}
	}
	return true
}

// take adds the n-th pod of a kind to the set and returns what undoes it.
func (s *search) take(k *kind, n int) (undo func()) {
	before := s.harm
	s.apply(k, 1)
	s.harm.victims++
	s.harm.optedOut += rankOf(k.pod.OptedOut)
	s.harm.originators += rankOf(k.pod.Originator)
	s.harm.priority = max(s.harm.priority, k.priority)
	for _, b := range k.pod.Budgets {
		if s.allowed[b] <= 0 {
			s.harm.violations++
		}
		s.allowed[b]--
	}
	s.taken = append(s.taken, &candidate{k.pods[n], k.route, k.onNode, k.priority})
	return func() {
		s.taken = s.taken[:len(s.taken)-1]
		for _, b := range k.pod.Budgets {
			s.allowed[b]++
		}
		s.harm = before
		s.apply(k, -1)
	}
}

// apply takes one victim of a kind off what is left and what may be taken.
func (s *search) apply(k *kind, sign int64) {
	for g := range s.left {
		s.left[g].amount -= sign * s.frees(k, g)
	}
	for _, a := range k.route.counts {
		budget := s.budget[a.index]
		for _, f := range k.all {
			if budget[f.typ] != unbounded {
				budget[f.typ] -= sign * f.amount
			}
		}
	}
}

// from weighs all sets that add victims of the kinds from i on.
func (s *search) from(i int) {
	if s.reached() {
		s.weigh()
		return
	}
	if i == len(s.kinds) || s.hopeless(i) {
		return
	}
	if s.visits++; s.visits > s.most {
		s.cut = true
		return
	}
	k := s.kinds[i]
	var undo []func()
	for n := 0; n < len(k.pods) && s.lawful(k) && !s.reached(); n++ {
		undo = append(undo, s.take(k, n))
		if s.best != nil && compareHarm(s.harm, s.best.harm) > 0 {
			break
		}
	}
	// The most victims of the kind first: it comes early, so it does little harm.
	for n := len(undo); ; n-- {
		if s.best == nil || compareHarm(s.harm, s.best.harm) <= 0 {
			s.from(i + 1)
		}
		if n == 0 {
			return
		}
		undo[n-1]()
	}
}

// weigh compares the set with the best so far.
func (s *search) weigh() {
	if s.best != nil && compareHarm(s.harm, s.best.harm) > 0 {
		return
	}
	p := &plan{node: s.node, victims: append([]*candidate(nil), s.taken...), harm: s.harm}
	p.finish(s.need)
	if s.best == nil || comparePlans(p, s.best) < 0 {
		s.best = p
	}
}
