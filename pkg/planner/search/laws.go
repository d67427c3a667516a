package search

import (
	"math"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// verdict is a rule about single pods in a form that is fast to count.
type verdict uint8

// The verdicts. Those about protected pods are in the order of the Protection values.
const (
	mayGo verdict = iota
	byDaemonSet
	byStatic
	byLeaving
	byBinding
	byForeign
	byLingering
	byRefused
	byDisabled
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
	byDaemonSet: planner.RuleDaemonSet, byStatic: planner.RuleStatic, byLeaving: planner.RuleLeaving, byBinding: planner.RuleBinding,
	byForeign: planner.RuleForeign, byLingering: planner.RuleLingering, byRefused: planner.RuleRefused, byDisabled: planner.RuleDisabled, byLaw2: planner.Law2, byLaw3: planner.Law3, byLaw4: planner.Law4, byLaw5: planner.Law5,
	byLaw6: planner.Law6, byLaw7: planner.Law7, byNeed: planner.RuleNotNeeded,
}

// contestedView is the laws on nodes with the same contested types.
type contestedView struct {
	*problem
	contested    []int
	isIn         []bool // contested, by type
	mayAsk       []bool // law 4, by depth of the common ancestor
	lacking      int    // the type that does not suffice for the asker's group (law 2); -1 for none
	leafVerdicts []*leafVerdict
	takable      [][]int64      // law 2, by account and type; made on first use
	gain         [][]int64      // law 2, by depth of the common ancestor and type, see gains
	pool         *candidatePool // candidates on all nodes; nil before first use
}

func (s *problem) newView(contested []int) *contestedView {
	st := &contestedView{problem: s, contested: contested, isIn: make([]bool, len(s.world.Types))}
	for _, t := range contested {
		st.isIn[t] = true
	}
	st.mayAsk = s.mayAsk(contested)
	st.lacking = st.lacks()
	st.gain = s.gains()
	return st
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
	met bool    // a node with such pods was surveyed
	// easy is a type in which every queue of the victim's side is over its guarantee (law
	// 5); -1 for none.
	easy int32
	// most and shift are copies of the path's.
	most  int64
	shift priorityShift
	path  *pathToLCA
	// room is, by type, the largest usage that a victim may have (law 2).
	room []int64
	// tight are the types in which room was too small for a pod.
	tight []bool
	// short counts, by type, the queues of the victim's side that are below their
	// guarantee in a type that is not contested; nil for none.
	short []int64
}

func (st *contestedView) leafVerdict(leaf queues.ID) *leafVerdict {
	if id := indexOf(leaf); id < len(st.leafVerdicts) && st.leafVerdicts[id] != nil {
		return st.leafVerdicts[id]
	}
	return st.newLeafVerdict(leaf)
}

func (st *contestedView) newLeafVerdict(leaf queues.ID) *leafVerdict {
	id := indexOf(leaf)
	st.leafVerdicts = grown(st.leafVerdicts, id)
	st.leafVerdicts[id] = st.judgeLeaf(st.pathFrom(leaf))
	return st.leafVerdicts[id]
}

func (st *contestedView) judgeLeaf(r *pathToLCA) *leafVerdict {
	o := st.arenas.verdicts.one()
	o.path = r
	switch {
	case r.barred != mayGo:
		o.all = r.barred
		return o
	case !st.mayAsk[r.lca]:
		o.all = byLaw4
		return o
	case st.lacking >= 0:
		o.all = byLaw2
		return o
	}
	o.most, o.shift = r.most, r.shift
	for _, a := range r.side {
		if !slices.ContainsFunc(st.contested, a.isOver) {
			o.all = byLaw5
			return o
		}
	}
	o.easy = -1
	for _, t := range st.contested {
		if !slices.ContainsFunc(r.side, func(a *account) bool { return !a.isOver(t) }) {
			o.easy = int32(t)
			break
		}
	}
	o.room, o.tight = st.arenas.amounts.list(len(st.world.Types)), st.arenas.flags.list(len(st.world.Types))
	for t := range o.room {
		o.room[t] = unbounded
		for _, a := range r.counts {
			o.room[t] = min(o.room[t], st.take(a)[t])
		}
	}
	st.findShort(o, r)
	return o
}

// findShort finds the types in which queues of a victim's side are already short of their
// guarantee.
func (st *contestedView) findShort(o *leafVerdict, r *pathToLCA) {
	for t := range o.room {
		for _, a := range r.side {
			if !a.named[t] || st.isIn[t] || a.used[t] >= a.guaranteed[t] {
				continue
			}
			if o.short == nil {
				o.short = make([]int64, len(o.room))
			}
			o.short[t]++
		}
		if o.short != nil && o.short[t] > 0 {
			o.room[t] = min(o.room[t], st.gain[r.lca][t]/o.short[t])
		}
	}
}

// gains is, by type, how much the asker reduces the shortage of guarantees of the queues
// on its side, below a depth. All victims together may increase the shortage of their
// queues by this amount (law 2). A shortage may move, but must never grow, or preemption
// would not end.
func (s *problem) gains() [][]int64 {
	out := make([][]int64, len(s.path))
	sum := make([]int64, len(s.world.Types))
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
func (st *contestedView) judge(e *planner.Entry, request planner.Amounts, o *leafVerdict) verdict {
	switch {
	case e.Protection != planner.Unprotected:
		return verdict(e.Protection)
	case o.all != mayGo:
		return o.all
	case int64(e.Priority) > o.most:
		return byLaw6
	case e.App == st.app && e.Pod.App == st.ask.App:
		return byLaw3
	case !st.mayLose(request, o):
		return byLaw5
	}
	for t, amount := range request {
		if amount > o.room[t] && amount > 0 {
			o.note(request)
			return byLaw2
		}
	}
	return mayGo
}

// note records the types in which room was too small for a pod.
func (o *leafVerdict) note(request planner.Amounts) {
	for t, amount := range request {
		o.tight[t] = o.tight[t] || amount > o.room[t] && amount > 0
	}
}

// mayLose reports whether every queue of the victim's side is over its guarantee in a
// contested type that the victim uses (law 5).
func (st *contestedView) mayLose(request planner.Amounts, o *leafVerdict) bool {
	if o.easy >= 0 && request.At(int(o.easy)) > 0 {
		return true
	}
next:
	for _, a := range o.path.side {
		for _, t := range st.contested {
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

// take returns, for each type, how much a set of victims may take from a queue (law 2).
func (st *contestedView) take(a *account) []int64 {
	st.takable = grown(st.takable, a.index)
	if st.takable[a.index] != nil {
		return st.takable[a.index]
	}
	out := st.arenas.amounts.list(len(st.world.Types))
	for t := range out {
		out[t] = unbounded
		switch {
		case !a.named[t]:
		case a.depth >= 0:
			expected := a.expected[t]
			out[t] = planner.Minus(planner.Plus(expected, st.ask.Request.At(t)), min(a.guaranteed[t], expected))
		case st.isIn[t] || a.used[t] >= a.guaranteed[t]:
			out[t] = max(planner.Minus(a.used[t], a.guaranteed[t]), 0)
		}
	}
	st.takable[a.index] = out
	return out
}
