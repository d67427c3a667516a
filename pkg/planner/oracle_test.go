package planner_test

import (
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// An oracle finds the best plan by exhaustive search. For every node it judges every set of pods by the
// laws as they are written down, and compares all sets that are lawful and free enough. It shares no
// code with the planner. The laws and criteria in without are switched off, and those in wide are
// interpreted too broadly, which makes the oracle a planner with a planted bug.
type oracle struct {
	*model
	without, wide map[string]bool
	path          []int // from the ask's queue up to root
	onPath        []bool
	chains        [][]int
	used          [][]int64
	arriving      [][]int64
	departing     [][]int64 // of leaving pods that no plan chose
	lacks         [][]int64 // what the asker lacks, by node and type
	overs         [][]int64 // by how much the asker exceeds the max of a queue of its path
	sums          [][]int64
	prices        []*alone // by pod, made on first use
	// Statistics: the largest number of pods that may be preempted on the asker's node, and the number
	// of pods that each rule forbade; for law 2, the number of nodes on which it forbade a set.
	candidates int
	stoppedBy  map[planner.Rule]int
}

// newOracle returns the oracle of a model, with the named planted bugs: "law 6" omits the
// law, "wide law 6" interprets it too broadly.
func newOracle(m *model, bugs ...string) *oracle {
	o := &oracle{
		model: m, prices: make([]*alone, len(m.pods)), without: map[string]bool{}, wide: map[string]bool{}, path: m.chain(m.ask.queue), stoppedBy: map[planner.Rule]int{},
	}
	for _, bug := range bugs {
		if law, wide := strings.CutPrefix(bug, "wide "); wide {
			o.wide[law] = true
		} else {
			o.without[law] = true
		}
	}
	for q := range m.queues {
		o.chains = append(o.chains, m.chain(q))
		o.onPath = append(o.onPath, slices.Contains(o.path, q))
		o.used = append(o.used, make([]int64, len(m.types)))
		o.arriving = append(o.arriving, make([]int64, len(m.types)))
		o.departing = append(o.departing, make([]int64, len(m.types)))
		o.sums = append(o.sums, make([]int64, len(m.types)))
	}
	for t := range m.types {
		for _, p := range m.pods {
			for _, q := range o.chain(p.queue) {
				switch {
				case p.protection != planner.Leaving:
					o.used[q][t] += p.request[t]
				case !p.preempted && !o.without["own deletes"]:
					o.departing[q][t] += p.request[t]
				}
			}
		}
		for _, a := range m.waiting {
			for _, q := range o.chain(a.queue) {
				o.arriving[q][t] += a.request[t]
			}
		}
	}
	o.obstacles()
	return o
}

func (o *oracle) chain(q int) []int {
	if q < 0 {
		return nil
	}
	return o.chains[q]
}

// obstacles finds what the asker lacks.
func (o *oracle) obstacles() {
	for node := range o.nodes {
		o.lacks = append(o.lacks, make([]int64, len(o.types)))
		for t, want := range o.ask.request {
			if want > 0 {
				o.lacks[node][t] = max(want-o.free(node, t), 0)
			}
		}
	}
	for q, queue := range o.queues {
		o.overs = append(o.overs, make([]int64, len(o.types)))
		for t, want := range o.ask.request {
			if most := queue.max[t]; q > 0 && o.onPath[q] && most != unnamed && want > 0 && !o.without["max"] {
				o.overs[q][t] = max(o.used[q][t]+o.arriving[q][t]+want-most, 0)
			}
		}
	}
}

// contested is S.
func (o *oracle) contested(node int) []bool {
	s, any := make([]bool, len(o.types)), false
	for t := range o.types {
		s[t] = o.lacks[node][t] > 0
		for _, q := range o.path {
			s[t] = s[t] || o.overs[q][t] > 0
		}
		any = any || s[t]
	}
	for t := range o.types {
		s[t] = s[t] || !any && o.ask.request[t] > 0
	}
	return s
}

// split returns the queues strictly below the lowest common ancestor, on the victim's and
// on the ask's side, and the common ancestor.
func (o *oracle) split(victim int) (victimSide, askSide []int, lca int) {
	up := o.chain(victim)
	for _, q := range up {
		if slices.Contains(o.path, q) {
			lca = q
			break
		}
		victimSide = append(victimSide, q)
	}
	return victimSide, o.path[:slices.Index(o.path, lca)], lca
}

func (o *oracle) effective(priority int32, below []int) int64 {
	e := int64(priority)
	for _, q := range below {
		p := o.queues[q].policies
		if p.PriorityFence && !o.without["priority fence"] {
			e = 0
		}
		if !o.without["priority offset"] {
			e += int64(p.PriorityOffset)
		}
	}
	return e
}

// fenceRoot is the first fence on the path up from the ask's queue, otherwise root.
func (o *oracle) fenceRoot() int {
	for _, q := range o.path {
		if o.queues[q].policies.Preemption == config.PreemptionFence && !o.without["law 7"] {
			return q
		}
	}
	return 0
}

func (o *oracle) disabled(q int) bool {
	own := o.queues[q]
	if own.policies.Preemption == config.PreemptionDisabled {
		return true
	}
	return (own.dynamic || o.wide["disabled"] && own.parent >= 0) && o.disabled(own.parent)
}

// protections are the rules that protect pods from every asker.
var protections = map[planner.Protection]planner.Rule{
	planner.DaemonSet: planner.RuleDaemonSet, planner.Static: planner.RuleStatic, planner.Leaving: planner.RuleLeaving,
	planner.Binding: planner.RuleBinding, planner.Foreign: planner.RuleForeign, planner.Refused: planner.RuleRefused,
}

// tooFar is the rule that protects a pod on another node that frees nothing below a queue
// over its max (P3).
const tooFar planner.Rule = "P3"

// forbids returns the rule that forbids a pod as a victim, independent of other victims;
// empty for none.
func (o *oracle) forbids(i, node int, s []bool) planner.Rule {
	p := o.pods[i]
	switch {
	case p.queue < 0:
		return planner.RuleForeign
	case p.protection != planner.Unprotected && !o.without["protection"]:
		return protections[p.protection]
	case p.queue == o.ask.queue:
		return planner.Law3
	}
	victimSide, askSide, lca := o.split(p.queue)
	switch {
	case !slices.Contains(o.chain(lca), o.fenceRoot()) || o.wide["law 7"] && o.fenced(victimSide) || o.wide["max"] && !o.within(o.taken(nil)) && !o.reaches(p):
		return planner.Law7
	case o.disabled(p.queue) && !o.without["disabled"]:
		return planner.RuleDisabled
	case !o.mayAsk(askSide, s) && !o.without["law 4"]:
		return planner.Law4
	case !o.enoughForAll(s) && !o.without["law 2 group"]:
		return planner.Law2
	case !o.overGuarantee(victimSide, s, nil) && !o.without["law 5"]:
		return planner.Law5
	case !o.mayRank(p.priority, victimSide, askSide) && !o.without["law 6"]:
		return planner.Law6
	case o.related(p) && !o.without["law 3"]:
		return planner.Law3
	case !o.overGuarantee(victimSide, s, p.request) && !o.without["law 5"]:
		return planner.Law5
	case o.wide["law 1"] && p.optedOut:
		return "law 1"
	case p.node != node && !o.reaches(p) && !o.without["P3"]:
		return tooFar
	}
	return ""
}

// rejects is forbids and the other rules by which a pod is no candidate on its node: law
// 2 for the pod alone, and that it frees nothing needed.
func (o *oracle) rejects(i int, s []bool) planner.Rule {
	p := o.pods[i]
	switch rule := o.forbids(i, p.node, s); {
	case rule != "":
		return rule
	case !o.law2(o.taken([]int{i}), s):
		return planner.Law2
	case !o.frees(p):
		return planner.RuleNotNeeded
	}
	return ""
}

// frees reports whether a pod frees anything that is needed on its node.
func (o *oracle) frees(p *mpod) bool {
	for t, amount := range p.request {
		if amount > 0 && (o.lacks[p.node][t] > 0 || slices.ContainsFunc(o.chain(p.queue), func(q int) bool { return o.overs[q][t] > 0 })) {
			return true
		}
	}
	return false
}

// related reports whether a pod is of the asker's application.
func (o *oracle) related(p *mpod) bool {
	return p.app == o.ask.app || o.wide["law 3"] && o.queues[p.queue].parent == o.queues[o.ask.queue].parent
}

func (o *oracle) fenced(queues []int) bool {
	return slices.ContainsFunc(queues, func(q int) bool { return o.queues[q].policies.Preemption == config.PreemptionFence })
}

// mayRank is law 6.
func (o *oracle) mayRank(priority int32, victimSide, askSide []int) bool {
	victim, ask := o.effective(priority, victimSide), o.effective(o.ask.priority, askSide)
	return victim < ask || victim == ask && !o.wide["law 6"]
}

// reaches reports whether a pod is below a queue over its max.
func (o *oracle) reaches(p *mpod) bool {
	if o.wide["P3"] {
		return false
	}
	return slices.ContainsFunc(o.chain(p.queue), func(q int) bool {
		return slices.ContainsFunc(o.overs[q], func(over int64) bool { return over > 0 })
	})
}

// overGuarantee reports whether all queues are over their guarantee (law 5) in a
// contested type that a victim uses; nil uses all.
func (o *oracle) overGuarantee(queues []int, s []bool, uses []int64) bool {
	for _, q := range queues {
		some, all := false, true
		for t := range o.types {
			if uses == nil || uses[t] > 0 {
				over := o.used[q][t] > max(o.queues[q].guaranteed[t], 0)
				some, all = some || over && s[t], all && over
			}
		}
		if !some || !all && uses != nil && o.wide["law 5"] {
			return false
		}
	}
	return true
}

// mayAsk is law 4.
func (o *oracle) mayAsk(askSide []int, s []bool) bool {
	some, missing := false, false
	for t, contested := range s {
		named := false
		for _, q := range askSide {
			g := o.queues[q].guaranteed[t]
			if !contested || g == unnamed {
				continue
			}
			named = true
			has := o.used[q][t] + o.departing[q][t] + o.arriving[q][t]
			if o.without["arriving"] {
				has -= o.arriving[q][t]
			}
			all := o.groupRequests(q, t)
			sum := int64(0)
			for _, a := range all {
				sum += a
			}
			others := sum
			if len(all) > 0 {
				others -= slices.Min(all)
			}
			if has+others >= g || (o.strict || o.wide["law 4 after"]) && has+sum > g {
				return false
			}
		}
		some, missing = some || named, missing || contested && !named
	}
	return some && !(missing && o.wide["law 4"])
}

// groupRequests returns the requests of a type by the asker and by each pod below a queue that
// starts with it, for those that request it.
func (o *oracle) groupRequests(q, t int) (out []int64) {
	if o.ask.request[t] > 0 {
		out = append(out, o.ask.request[t])
	}
	for _, m := range o.ask.members {
		if m.request[t] > 0 && slices.Contains(o.chain(m.queue), q) && !o.without["law 4 group"] {
			out = append(out, m.request[t])
		}
	}
	return out
}

// enoughForAll is law 2 for all pods that start with the asker.
func (o *oracle) enoughForAll(s []bool) bool {
	if len(o.ask.members) == 0 {
		return true
	}
	for t, contested := range s {
		need, have := o.ask.request[t], o.freeInAll(t)
		for _, m := range o.ask.members {
			need += m.request[t]
		}
		if contested && need > have+o.above(s, t) {
			return false
		}
	}
	return true
}

// above returns how much of a type the queues that may lose pods use above their
// guarantees: the sum over leaves, limited by what each queue above them may lose.
func (o *oracle) above(s []bool, t int) int64 {
	sum, left := int64(0), make([]int64, len(o.queues))
	for q := len(o.queues) - 1; q > 0; q-- { // children after their parents
		if o.onPath[q] {
			continue
		}
		if o.isLeaf(q) && !o.disabled(q) {
			left[q] = o.used[q][t]
		}
		if g := o.queues[q].guaranteed[t]; g != unnamed {
			left[q] = min(left[q], max(o.used[q][t]-g, 0))
		}
		parent := o.queues[q].parent
		switch _, askSide, lca := o.split(q); {
		case !o.onPath[parent]:
			left[parent] += left[q]
		case slices.Contains(o.chain(lca), o.fenceRoot()) && o.mayAsk(askSide, s):
			sum += left[q]
		}
	}
	return sum
}

// taken returns what a set takes from each queue. The next call overwrites it.
func (o *oracle) taken(set []int) [][]int64 {
	for q := range o.sums {
		clear(o.sums[q])
	}
	for _, i := range set {
		o.take(i, 1)
	}
	return o.sums
}

// take adds a pod to what is taken, or removes it.
func (o *oracle) take(i int, sign int64) {
	p := o.pods[i]
	for _, q := range o.chain(p.queue) {
		for t, amount := range p.request {
			o.sums[q][t] += sign * amount
		}
	}
}

// law2 judges the complete set.
func (o *oracle) law2(taken [][]int64, s []bool) bool {
	for i, q := range o.queues {
		for t, r := range taken[i] {
			g, used := q.guaranteed[t], o.used[i][t]
			if g == unnamed || r == 0 {
				continue
			}
			if !o.onPath[i] {
				if used-r < g && (s[t] || used >= g || o.wide["law 2"]) && !o.without["law 2"] {
					return false
				}
				continue
			}
			has := used + o.arriving[i][t]
			least := min(g, has)
			if o.wide["law 2 common"] {
				least = g
			}
			if has-r+o.ask.request[t] < least && !o.without["law 2 common"] {
				return false
			}
		}
	}
	for t := range o.types {
		shorter := o.shorter(taken, t)
		if shorter > 0 && (o.wide["law 2 shortage"] || shorter > o.lessShort(taken, t)) && !o.without["law 2 shortage"] {
			return false
		}
	}
	return true
}

// shorter returns how much the shortage of a type grows in queues that only lose.
func (o *oracle) shorter(taken [][]int64, t int) int64 {
	sum := int64(0)
	for i, q := range o.queues {
		if g := q.guaranteed[t]; g != unnamed && taken[i][t] > 0 && !o.onPath[i] {
			sum += max(g-o.used[i][t]+taken[i][t], 0) - max(g-o.used[i][t], 0)
		}
	}
	return sum
}

// lessShort returns how much the shortage of a type shrinks in queues that only gain.
func (o *oracle) lessShort(taken [][]int64, t int) int64 {
	sum := int64(0)
	for _, i := range o.path {
		if slices.ContainsFunc(taken[i], func(r int64) bool { return r > 0 }) {
			break
		}
		if g := o.queues[i].guaranteed[t]; g != unnamed {
			has := o.used[i][t] + o.departing[i][t] + o.arriving[i][t]
			sum += max(g-has, 0) - max(g-has-o.ask.request[t], 0)
		}
	}
	return sum
}

// freed is what a set frees on a node.
func (o *oracle) freed(node int, set []int) []int64 {
	out := make([]int64, len(o.types))
	for _, i := range set {
		o.gain(out, node, i, 1)
	}
	return out
}

// gain adds what a pod frees on a node, or subtracts it.
func (o *oracle) gain(freed []int64, node, i int, sign int64) {
	if o.pods[i].node == node || o.without["P3"] {
		for t, amount := range o.pods[i].request {
			freed[t] += sign * amount
		}
	}
}

// room reports whether the asker runs on the node once the set is gone.
func (o *oracle) room(node int, set []int, taken [][]int64) bool {
	return o.roomy(node, o.freed(node, set), taken)
}

func (o *oracle) roomy(node int, freed []int64, taken [][]int64) bool {
	for t, lack := range o.lacks[node] {
		if lack > freed[t] {
			return false
		}
	}
	return o.within(taken)
}

// within reports whether no queue of the asker is over its max then.
func (o *oracle) within(taken [][]int64) bool {
	for _, q := range o.path {
		for t, over := range o.overs[q] {
			if over > taken[q][t] {
				return false
			}
		}
	}
	return true
}

// lawful judges any set of victims. Unneeded victims on the node are accepted, because
// the laws do not forbid them.
func (o *oracle) lawful(node int, set []int) bool {
	s := o.contested(node)
	for i, pod := range set {
		if o.forbids(pod, node, s) != "" {
			return false
		}
		others := slices.Delete(slices.Clone(set), i, i+1)
		if o.pods[pod].node != node && !o.without["P3"] && o.within(o.taken(others)) {
			return false
		}
	}
	taken := o.taken(set)
	return (!o.ask.never || o.without["never"]) && o.law2(taken, s) && o.room(node, set, taken)
}
