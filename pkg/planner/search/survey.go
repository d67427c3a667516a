package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// candidate is a pod that every law about single victims allows.
type candidate struct {
	*planner.Entry
	request planner.Amounts
	path    *pathToLCA
	node    *planner.Node
	// priority is the effective priority strictly below the fence root, not that of the
	// pod.
	priority int64
	rank     planner.Class
	onNode   bool // it is on the node of the plan
}

// harmOf returns the smallest values of the first three criteria of a set with a victim
// of a class.
func harmOf(c planner.Class) harm {
	h := harmless
	h.addClass(c, 1)
	return h
}

// exceeds reports whether every set of at least this many victims with this one does more
// harm than h.
func (c *candidate) exceeds(h *harm, victims int) bool {
	if c.rank == planner.ClassPlain && h.optedOut == 0 && h.violations == 0 && h.originators == 0 && h.slow == 0 {
		return c.priority > h.priority || c.priority == h.priority && (c.Slow || victims > h.victims)
	}
	least := harmOf(c.rank)
	least.priority, least.slow, least.victims = c.priority, planner.Rank(c.Slow), victims
	return compareHarm(least, *h) > 0
}

// bounds tell which candidates are in no plan that is better than the best.
type bounds struct {
	// from are, by class, the priorities from which a single victim does too much harm.
	from [planner.Classes]int64
	// priority and since are set if a single plain victim of this priority does as much harm
	// as the best plan and, on this node, wastes no less. Of these victims, those created
	// before since, in Unix seconds, are too old.
	priority int64
	since    int64
}

// boundless are bounds that exclude no candidate.
var boundless = bounds{
	from:  [planner.Classes]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64},
	since: math.MinInt64,
}

// bounds returns the bounds by the harm of a plan.
func (p *plan) bounds() bounds {
	b, h := boundless, &p.harm
	same := *h
	same.priority, same.slow, same.victims = harmless.priority, 0, harmless.victims
	for c := range planner.Classes {
		switch by := compareHarm(harmOf(c), same); {
		case by > 0:
			b.from[c] = math.MinInt64
		case by == 0 && h.victims == 0:
			b.from[c] = h.priority
		case by == 0:
			b.from[c] = h.priority + 1
		}
	}
	return b
}

// tightenByWaste lowers the bounds by the waste of the best plan, if that plan has one plain
// victim that is not slow, of priority p. Several victims, one of them of priority p, do more
// harm. A single one of priority p does as much harm at best, and then the waste decides: it is
// at least the waste of the least request on this node. If that is more than the best plan's, or
// equal and the victim is older, the node needs no search.
func (sv *survey) tightenByWaste(best *plan) {
	h := &best.harm
	if h.victims != 1 || h.optedOut != 0 || h.violations != 0 || h.originators != 0 || h.slow != 0 {
		return
	}
	var least resources.Share
	for t, amount := range sv.digest.Least {
		least = least.Max(sv.waste(t, amount))
	}
	switch c := least.Compare(best.waste); {
	case c > 0:
		sv.bounds.from[planner.ClassPlain] = h.priority
	case c == 0:
		sv.bounds.priority, sv.bounds.since = h.priority, best.created[0].Unix()
	}
}

// exclude reports whether a victim of a class is in no better plan.
func (b *bounds) exclude(c planner.Class, priority, created int64) bool {
	return priority >= b.from[c] || c == planner.ClassPlain && priority == b.priority && created < b.since
}

// classOf returns the class of a pod in the current state of the budgets.
func (s *problem) classOf(e *planner.Entry) planner.Class {
	switch {
	case e.Budget == planner.NoBudget || e.Class == planner.ClassOptedOut:
		return e.Class
	case e.Budget == planner.ManyBudgets:
		if e.Pod.Violates(s.snapshot.Budgets) {
			return planner.ClassViolator
		}
	case s.snapshot.Budgets[e.Budget] <= 0:
		return planner.ClassViolator
	}
	return e.Class
}

func (c *candidate) frees(g *goal) int64 { return frees(c.request, c.path.lca, c.onNode, g) }

// survey is a node with what the asker lacks there and the pods that may be preempted.
type survey struct {
	*contestedView
	node *planner.Node
	// goals is what must be freed.
	goals      []goal
	candidates []candidate
	digest     *planner.Digest
	bounds     bounds
	least      []int64 // scratch for minWaste
}

// surveyNode surveys a node. The survey is valid until the next call. With everything, for
// obstacles that are not amounts, every pod helps. Otherwise pods that are in no plan
// better than the best so far are omitted.
func (pl *planning) surveyNode(n *planner.Node, everything bool) *survey {
	sv := &pl.survey
	sv.node, sv.digest, sv.bounds = n, n.Digest(), boundless
	sv.goals = pl.goals(sv.goals[:0], n)
	sv.contestedView = pl.viewFor(sv.goals)
	if best := pl.toBeat(); best != nil && !everything {
		sv.bounds = best.bounds()
		sv.tightenByWaste(best)
	}
	rejected := &pl.rejected
	if !pl.counting {
		rejected = &[verdicts]int{}
	}
	sv.candidates = sv.gather(sv.candidates[:0], everything, rejected)
	return sv
}

// viewFor returns the view for goals, made once for each contested set.
func (pl *planning) viewFor(goals []goal) *contestedView {
	pl.contestedNow = pl.contested(pl.contestedNow[:0], goals)
	for _, cv := range pl.views {
		if slices.Equal(cv.contested, pl.contestedNow) {
			return cv
		}
	}
	cv := pl.newView(slices.Clone(pl.contestedNow))
	pl.views = append(pl.views, cv)
	return cv
}

// gather appends the candidates among the pods of the node.
//
// A pod that the laws allow uses a contested type (law 5). So it always helps if the node
// lacks all contested types.
func (sv *survey) gather(to []candidate, everything bool, rejected *[verdicts]int) []candidate {
	d := sv.digest
	everything = everything || len(sv.over) == 0 && len(sv.goals) > 0
	for _, run := range d.Runs {
		if run.Leaf == queues.NoQueue {
			rejected[byForeign] += int(run.To - run.From)
			continue
		}
		lv := sv.leafVerdict(run.Leaf)
		lv.surveyed = true
		if lv.all != mayGo && run.Protected == 0 {
			rejected[lv.all] += int(run.To - run.From)
			continue
		}
		for i := int(run.From); i < int(run.To); i++ {
			e, request := &d.Entries[i], d.Request(i)
			why := sv.judge(e, request, lv)
			if why == mayGo && !everything && !helps(request, lv.path.lca, true, sv.goals) {
				why = byNeed
			}
			if why == byLaw6 {
				sv.noteHigher(e, lv.path, sv.node)
			}
			if why != mayGo {
				rejected[why]++
				continue
			}
			priority := lv.path.shift.apply(int64(e.Priority))
			if sv.bounds.exclude(e.Class, priority, e.Created) {
				continue
			}
			class := e.Class
			if e.Budget != planner.NoBudget {
				if class = sv.classOf(e); sv.bounds.exclude(class, priority, e.Created) {
					continue
				}
			}
			to = append(to, candidate{e, request, lv.path, sv.node, priority, class, true})
		}
	}
	return to
}

// helps reports whether a victim frees an amount that is needed.
func helps(request planner.Amounts, lca int, onNode bool, goals []goal) bool {
	for i := range goals {
		if frees(request, lca, onNode, &goals[i]) > 0 {
			return true
		}
	}
	return false
}

// byHarm orders candidates: the least harm first, among equal harm the largest, then the
// youngest. Equivalent candidates are neighbours. The order of the snapshot's types has no
// influence.
func (s *problem) byHarm(a, b *candidate) int {
	switch {
	case a.rank != b.rank:
		return cmp.Compare(a.rank, b.rank)
	case a.priority != b.priority:
		return cmp.Compare(a.priority, b.priority)
	case a.Slow != b.Slow:
		return cmp.Compare(planner.Rank(a.Slow), planner.Rank(b.Slow))
	}
	for _, t := range s.typesByName {
		if c := cmp.Compare(b.request.At(t), a.request.At(t)); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(planner.Rank(a.Pod.Originator), planner.Rank(b.Pod.Originator)),
		slices.Compare(a.Pod.Budgets, b.Pod.Budgets),
		cmp.Compare(a.path.leaf.Path, b.path.leaf.Path),
		cmp.Compare(planner.Rank(b.onNode), planner.Rank(a.onNode)),
		b.Pod.Created.Compare(a.Pod.Created),
		cmp.Compare(a.Pod.UID, b.Pod.UID),
	)
}

// alike reports whether no criterion before creation distinguishes two candidates: then
// taking the younger is as good as taking the other.
func alike(a, b *candidate) bool {
	return a.path == b.path && a.onNode == b.onNode && a.priority == b.priority && a.Slow == b.Slow &&
		a.Pod.OptedOut == b.Pod.OptedOut && a.Pod.Originator == b.Pod.Originator &&
		slices.Equal(a.request, b.request) && slices.Equal(a.Pod.Budgets, b.Pod.Budgets)
}
