package search

import (
	"math"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// verdict is a rule about single pods in a form that is fast to count.
type verdict uint8

// The verdicts on protected pods are the Protection values; others follow.
const (
	mayGo     = verdict(planner.Unprotected)
	byForeign = verdict(planner.Foreign)
)

const (
	byDisabled = verdict(planner.TooSlow) + 1 + iota
	byLaw2
	byLaw3
	byLaw4
	byLaw5
	byLaw6
	byLaw7
	byNeed
	verdicts
)

var ruleOf = [verdicts]planner.Rule{
	byDisabled: planner.RuleDisabled,
	byLaw2:     planner.Law2,
	byLaw3:     planner.Law3,
	byLaw4:     planner.Law4,
	byLaw5:     planner.Law5,
	byLaw6:     planner.Law6,
	byLaw7:     planner.Law7,
	byNeed:     planner.RuleNotNeeded,
}

// contestedView is the laws on nodes with the same contested types.
type contestedView struct {
	*problem
	contested     []int
	isContested   []bool // by type
	mayAsk        []bool // law 4, by depth of the common ancestor
	lacking       int    // the type that does not suffice for the asker's group (law 2); -1 for none
	leafVerdicts  []*leafVerdict
	takable       [][]int64      // laws 2a and 2c, by account and type; made on first use
	gain          [][]int64      // law 2b, by depth of the common ancestor and type, see gains
	candidatePool *candidatePool // candidates on all nodes; nil before first use
}

// newView returns the laws where these types are contested.
func (s *problem) newView(contested []int) *contestedView {
	cv := &contestedView{problem: s, contested: contested, isContested: make([]bool, len(s.snapshot.Types))}
	for _, t := range contested {
		cv.isContested[t] = true
	}
	cv.mayAsk = s.mayAsk(contested)
	cv.lacking = cv.lacks()
	cv.gain = s.gains()
	return cv
}

// mayAsk reports, by the depth of a common ancestor, whether the ask side below it is
// under its guarantee in the contested types (law 4): at least one queue guarantees one
// of them, and no queue has reached its guarantee.
func (s *problem) mayAsk(contested []int) []bool {
	ok := make([]bool, len(s.path))
	guaranteed, under := false, true
	for d := len(s.path) - 1; d >= 0; d-- {
		ok[d] = guaranteed && under
		a := s.path[d]
		for _, t := range contested {
			if !a.named[t] {
				continue
			}
			guaranteed = true
			under = under && s.underGuarantee(a, t)
		}
	}
	return ok
}

// underGuarantee reports whether a queue of the ask's path is under its guarantee in a
// type when all but one of the asker's group are placed, whichever one that is.
func (s *problem) underGuarantee(a *account, t int) bool {
	sum, least := s.requested(a, t)
	if s.params.StrictGuarantee {
		return planner.Plus(a.has[t], sum) <= a.guaranteed[t]
	}
	return planner.Plus(a.has[t], planner.Minus(sum, least)) < a.guaranteed[t]
}

// leafVerdict is what a view determines for the pods of one leaf.
//
// The fields that are read for every pod come first, in as little memory as possible.
type leafVerdict struct {
	all verdict // on all pods, unless mayGo
	// surveyed is true once a node with such pods was surveyed.
	surveyed bool
	// allOver is a type in which every queue of the victim's side is over its guarantee (law
	// 5); -1 for none.
	allOver int32
	path    *pathToLCA
	// room is, by type, the largest usage that a victim may have (law 2).
	room []int64
	// tight are the types in which room was too small for a pod.
	tight []bool
	// short counts, by type, the queues of the victim's side that are below their
	// guarantee in a type that is not contested; nil for none.
	short []int64
}

// leafVerdict returns the verdict on the pods of a leaf, which is made once.
func (cv *contestedView) leafVerdict(leaf queues.ID) *leafVerdict {
	if id := indexOf(leaf); id < len(cv.leafVerdicts) && cv.leafVerdicts[id] != nil {
		return cv.leafVerdicts[id]
	}
	return cv.newLeafVerdict(leaf)
}

func (cv *contestedView) newLeafVerdict(leaf queues.ID) *leafVerdict {
	id := indexOf(leaf)
	cv.leafVerdicts = grown(cv.leafVerdicts, id)
	cv.leafVerdicts[id] = cv.judgeLeaf(cv.pathFrom(leaf))
	return cv.leafVerdicts[id]
}

// judgeLeaf makes the verdict on the pods of the leaf of a path.
func (cv *contestedView) judgeLeaf(r *pathToLCA) *leafVerdict {
	lv := &leafVerdict{path: r}
	switch {
	case r.barred != mayGo:
		lv.all = r.barred
		return lv
	case !cv.mayAsk[r.lca]:
		lv.all = byLaw4
		return lv
	case cv.lacking >= 0:
		lv.all = byLaw2
		return lv
	}
	for _, a := range r.side {
		if !slices.ContainsFunc(cv.contested, a.isOver) {
			lv.all = byLaw5
			return lv
		}
	}
	lv.allOver = -1
	for _, t := range cv.contested {
		if !slices.ContainsFunc(r.side, func(a *account) bool { return !a.isOver(t) }) {
			lv.allOver = int32(t)
			break
		}
	}
	lv.room, lv.tight = make([]int64, len(cv.snapshot.Types)), make([]bool, len(cv.snapshot.Types))
	for t := range lv.room {
		lv.room[t] = unbounded
		for _, a := range r.counts {
			lv.room[t] = min(lv.room[t], cv.takableFrom(a)[t])
		}
	}
	cv.findShort(lv, r)
	return lv
}

// findShort finds the types in which queues of a victim's side are already short of their
// guarantee.
func (cv *contestedView) findShort(lv *leafVerdict, r *pathToLCA) {
	for t := range lv.room {
		for _, a := range r.side {
			if !a.named[t] || cv.isContested[t] || a.used[t] >= a.guaranteed[t] {
				continue
			}
			if lv.short == nil {
				lv.short = make([]int64, len(lv.room))
			}
			lv.short[t]++
		}
		if lv.short != nil && lv.short[t] > 0 {
			lv.room[t] = min(lv.room[t], cv.gain[r.lca][t]/lv.short[t])
		}
	}
}

// gains is, by type, how much the asker reduces the shortage of guarantees of the queues
// on its side, below a depth. All victims together may increase the shortage of their
// queues by this amount (law 2b). A shortage may move, but must never grow, or preemption
// would not end.
func (s *problem) gains() [][]int64 {
	out := make([][]int64, len(s.path))
	sum := make([]int64, len(s.snapshot.Types))
	for d := len(s.path) - 1; d >= 0; d-- {
		out[d] = slices.Clone(sum)
		a := s.path[d]
		for t := range sum {
			if a.named[t] {
				has := a.has[t]
				gain := min(planner.Plus(has, s.ask.Request.At(t)), a.guaranteed[t]) - min(has, a.guaranteed[t])
				sum[t] = planner.Plus(sum[t], gain)
			}
		}
	}
	return out
}

// judge returns the rule by which a pod is no victim, independent of other victims.
func (cv *contestedView) judge(e *planner.Entry, request planner.Amounts, lv *leafVerdict) verdict {
	switch {
	case e.Protection != planner.Unprotected:
		return verdict(e.Protection)
	case lv.all != mayGo:
		return lv.all
	case int64(e.Priority) > lv.path.maxPriority:
		return byLaw6
	case e.App == cv.app && e.Pod.App == cv.ask.App:
		return byLaw3
	case !cv.mayLose(request, lv):
		return byLaw5
	}
	for t, amount := range request {
		if amount > lv.room[t] && amount > 0 {
			lv.noteTight(request)
			return byLaw2
		}
	}
	return mayGo
}

// noteTight records the types in which room was too small for a pod.
func (lv *leafVerdict) noteTight(request planner.Amounts) {
	for t, amount := range request {
		lv.tight[t] = lv.tight[t] || amount > lv.room[t] && amount > 0
	}
}

// mayLose reports whether every queue of the victim's side is over its guarantee in a
// contested type that the victim uses (law 5).
func (cv *contestedView) mayLose(request planner.Amounts, lv *leafVerdict) bool {
	if lv.allOver >= 0 && request.At(int(lv.allOver)) > 0 {
		return true
	}
next:
	for _, a := range lv.path.side {
		for _, t := range cv.contested {
			if request.At(t) > 0 && a.isOver(t) {
				continue next
			}
		}
		return false
	}
	return true
}

// unbounded is the amount that may be taken of a type that a queue does not protect.
const unbounded = math.MaxInt64

// takableFrom returns, for each type, how much a set of victims may take from a queue: law 2c
// for a queue above the asker, law 2a for one of the victims.
func (cv *contestedView) takableFrom(a *account) []int64 {
	cv.takable = grown(cv.takable, a.index)
	if cv.takable[a.index] != nil {
		return cv.takable[a.index]
	}
	out := make([]int64, len(cv.snapshot.Types))
	for t := range out {
		out[t] = unbounded
		switch {
		case !a.named[t]:
		case a.depth >= 0:
			expected := a.expected[t]
			out[t] = planner.Minus(planner.Plus(expected, cv.ask.Request.At(t)), min(a.guaranteed[t], expected))
		case cv.isContested[t] || a.used[t] >= a.guaranteed[t]:
			out[t] = max(planner.Minus(a.used[t], a.guaranteed[t]), 0)
		}
	}
	cv.takable[a.index] = out
	return out
}
