package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// defaultMaxFits is the limit of calls of Params.Fits, unless Params has one.
const defaultMaxFits = 100

// Limits of the search.
const (
	// exhaustiveUpTo is the number of candidates up to which every choice is considered.
	exhaustiveUpTo = 16
	// visitsPerSearch limits the visits of a search among more candidates, and visitsInAll
	// the visits of all such searches together.
	visitsPerSearch = 1 << 12
	visitsInAll     = 1 << 15
	// lastSearches is the number of nodes that are searched for any plan at all when no
	// visits are left. By then an initial solution was tried on all of them, or, with large
	// pools, on mostInitial.
	lastSearches = 64
	mostInitial  = 64
	// initialPlans is the number of promising nodes that get an initial plan as soon as
	// they are seen, so that later plans have a good one to beat. These nodes are searched
	// when all have been seen.
	initialPlans = 16
)

// Plan decides which pods are preempted for an asker, or why none are.
func Plan(snapshot *planner.Snapshot, ask *planner.Ask, p planner.Params) planner.Decision {
	if p.MaxFits <= 0 {
		p.MaxFits = defaultMaxFits
	}
	s, ok := newProblem(snapshot, ask, p)
	pl := &planning{problem: s, mostPlans: 1, poolSize: poolSize, visitsLeft: visitsInAll, exhaustive: true}
	switch {
	case !ok:
		return pl.refuse(planner.RuleNoQueue)
	case ask.Never:
		return pl.refuse(planner.RuleNeverPreempt)
	}
	if p.Fits != nil {
		pl.mostPlans = min(plansKept, p.MaxFits)
	}
	for {
		pl.firstPass()
		pl.searchLater()
		d, decided := pl.choose()
		switch {
		case !decided:
			pl.mostPlans = p.MaxFits
		case d.Outcome == planner.Refuse && pl.enlarge():
		default:
			return d
		}
		pl.later, pl.tried = pl.later[:0], 0
	}
}

// enlarge drops the pools, so that larger ones are made. It returns false if no pool can
// grow.
func (pl *planning) enlarge() bool {
	small := slices.ContainsFunc(pl.views, func(cv *contestedView) bool { return cv.candidatePool != nil && !cv.candidatePool.whole })
	if !small || pl.poolSize == largePool {
		return false
	}
	for _, cv := range pl.views {
		cv.candidatePool = nil
	}
	pl.poolSize, pl.blocked, pl.tooFew = largePool, false, false
	return true
}

// plansKept is the number of plans kept at first if the real filters are used. They mostly
// accept one of the best plans, and with fewer kept plans a node without a better one is
// recognised sooner. If they accept none, the nodes are examined again for as many plans
// as the filters may be run for.
const plansKept = 4

// planning collects the best plans of all nodes.
type planning struct {
	*problem
	plans     []*plan // best first, one per node
	mostPlans int     // maximal number of plans
	// poolSize is the number of candidates of a pool, unless more are needed.
	poolSize int
	later    []visit // the nodes to search after the first pass

	views  []*contestedView
	survey survey
	search nodeSearch
	tally
	filterRuns
	scratch

	visitsLeft int  // of visitsInAll
	tried      int  // nodes for which an initial plan was tried in this pass
	last       int  // searches for any plan since no visits are left
	exhaustive bool // every choice was considered
}

// tally is why pods were no victims.
type tally struct {
	// counting is true in the first pass over the pods. counted is the number of nodes on
	// which pods were counted.
	counting bool
	counted  int
	rejected [verdicts]int
	blocked  bool // law 2 stopped a set
	tooFew   bool // all candidates of a node together free too little
}

// filterRuns is what the real filters returned so far.
type filterRuns struct {
	planner.FilterResults
	asked []*planner.Node // the filters rejected their best plan
}

// scratch is lists that are used again.
type scratch struct {
	contestedNow []int
	collected    []candidate
	trial        plan
}

// visit is a node where several victims might make the best plan. No set there does less
// harm than bound. No set with that harm frees less beyond need than waste, or has
// victims created after youngest, in Unix seconds.
type visit struct {
	node     *planner.Node
	bound    harm
	waste    resources.Share
	youngest int64
}

// compareVisits orders visits, the most promising first.
func compareVisits(a, b visit) int {
	return cmp.Or(
		compareHarm(a.bound, b.bound),
		a.waste.Compare(b.waste),
		cmp.Compare(b.youngest, a.youngest),
		cmp.Compare(a.node.Name, b.node.Name),
	)
}

// toBeat returns the plan that a new one must be better than; nil for any.
func (pl *planning) toBeat() *plan {
	if len(pl.plans) < pl.mostPlans {
		return nil
	}
	return pl.plans[len(pl.plans)-1]
}

// add keeps a plan if it is among the best and the best of its node.
func (pl *planning) add(p *plan) {
	if i := slices.IndexFunc(pl.plans, func(q *plan) bool { return q.node == p.node }); i >= 0 {
		if comparePlans(p, pl.plans[i]) >= 0 {
			return
		}
		pl.plans = slices.Delete(pl.plans, i, i+1)
	}
	at, _ := slices.BinarySearchFunc(pl.plans, p, comparePlans)
	pl.plans = slices.Insert(pl.plans, at, p)
	pl.plans = pl.plans[:min(len(pl.plans), pl.mostPlans)]
}

// searchLater searches nodes where several victims might be better than the best plan so
// far, the most promising first.
func (pl *planning) searchLater() {
	if best := pl.toBeat(); best != nil {
		pl.later = slices.DeleteFunc(pl.later, func(v visit) bool { return v.cannotBeat(best) })
	}
	slices.SortFunc(pl.later, compareVisits)
	for i := range pl.later {
		v, best := &pl.later[i], pl.toBeat()
		if best != nil && v.cannotBeat(best) {
			return // nor can the following ones
		}
		pl.searchNode(pl.surveyNode(v.node, false), v.bound)
	}
}

// addInitial adds an initial plan with several victims on a node, if the first one found is
// good enough.
func (pl *planning) addInitial(sv *survey) {
	best := pl.toBeat()
	pl.collect(sv, best)
	pl.search.start(sv, pl.collected, best)
	pl.search.initialSolution()
	if pl.search.found {
		pl.add(pl.search.best)
	}
}

// searchNode searches for a plan with several victims on a node.
func (pl *planning) searchNode(sv *survey, bound harm) {
	best := pl.toBeat()
	whole := pl.collect(sv, best)
	large := !whole || len(pl.collected) > exhaustiveUpTo
	if large && !pl.maySearch(sv.node, bound, best) {
		pl.exhaustive = false
		return
	}
	s := &pl.search
	s.start(sv, pl.collected, best)
	s.most = math.MaxInt
	if large {
		s.most = max(min(visitsPerSearch, pl.visitsLeft), 2*len(s.groups))
	}
	s.initialSolution()
	s.searchFrom(0)
	pl.blocked = pl.blocked || s.blocked
	if s.most < math.MaxInt {
		pl.visitsLeft = max(pl.visitsLeft-s.visits, 0)
	}
	if s.cut || !whole {
		pl.exhaustive = false
	}
	if s.cut {
		pl.repair()
	} else if s.found {
		pl.add(s.best)
	}
}

// maySearch reports whether a node with more than exhaustiveUpTo candidates is searched for a plan
// that is better than the best, or for any.
func (pl *planning) maySearch(n *planner.Node, bound harm, best *plan) bool {
	switch {
	case best == nil && pl.visitsLeft == 0:
		pl.last++
		return pl.last <= lastSearches
	case best == nil || best.node == n:
		return true
	}
	return pl.visitsLeft > 0 && (compareHarm(bound, best.harm) != 0 || best.waste != resources.Share{})
}

// collect lists the candidates of a node, and those of other nodes for a queue over its max.
// It omits candidates that are too harmful for a better plan. It reports whether the list
// is complete.
func (pl *planning) collect(sv *survey, best *plan) bool {
	pl.collected = append(pl.collected[:0], sv.candidates...)
	whole := true
	if len(pl.over) > 0 {
		p := pl.poolFor(sv)
		whole = p.whole
		pl.collected = p.elsewhere(pl.collected, sv.node)
	}
	if best != nil {
		pl.collected = slices.DeleteFunc(pl.collected, func(c candidate) bool { return c.exceeds(&best.harm, 2) })
	}
	return whole
}

// repair repairs the result of a search that was cut off. If the search found victims,
// it removes those that are not needed. If it found none, the largest candidates are
// tried.
func (pl *planning) repair() {
	s := &pl.search
	if s.found {
		s.clear()
		for i := range s.best.victims {
			s.add(&s.best.victims[i])
		}
		pl.add(s.planOf(s.spare(always)))
		return
	}
	for g := range s.goals {
		if s.takeLargest(g) {
			pl.add(s.planOf(s.spare(always)))
		}
	}
}
