package daemonset_test

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
)

// An oracle decides by exhaustive search: it judges every pod and every set of pods by
// the rules as they are written down. It shares no code with the planner. The rules in
// without are switched off, which makes the oracle a planner with a planted bug.
type oracle struct {
	*model
	without map[string]bool
	needs   []int64
}

// verdict is the oracle's decision. Victims are indexes of pods, in order.
type verdict struct {
	outcome   planner.Outcome
	victims   []int
	selection daemonset.Selection
	stopped   planner.Rule
}

func (v verdict) equal(w verdict) bool {
	return v.outcome == w.outcome && v.stopped == w.stopped && v.selection == w.selection && slices.Equal(v.victims, w.victims)
}

func newOracle(m *model, without ...string) *oracle {
	o := &oracle{m, map[string]bool{}, nil}
	for _, rule := range without {
		o.without[rule] = true
	}
	for t := range m.types {
		o.needs = append(o.needs, o.lack(t))
	}
	return o
}

// lack is D7.
func (o *oracle) lack(t int) int64 {
	free := o.free(t)
	for _, request := range o.before {
		if o.without["holders"] {
			free += request[t]
		}
	}
	for _, p := range o.pods {
		if p.protection == planner.Leaving && o.without["leaving"] {
			free -= p.request[t]
		}
	}
	switch {
	case o.ask.request[t] == 0:
		return 0
	case o.without["free"] && free < o.ask.request[t]: // as in YuniKorn
		return o.ask.request[t]
	}
	return max(o.ask.request[t]-free, 0)
}

func (o *oracle) short() bool {
	return slices.ContainsFunc(upTo(len(o.types)), func(t int) bool { return o.needs[t] > 0 })
}

// covered reports whether a set frees what is needed.
func (o *oracle) covered(set []int) bool {
	for t := range o.types {
		freed := int64(0)
		for _, i := range set {
			freed += o.pods[i].request[t]
		}
		if freed < o.needs[t] {
			return false
		}
	}
	return true
}

// enough reports whether the asker fits without a set.
func (o *oracle) enough(set []int) bool {
	return o.covered(set) && (o.passes(set) || o.without["filters"])
}

// stranger reports whether a pod is in the class after all others.
func (o *oracle) stranger(p *mpod) bool { return p.foreign && (!p.peer || o.without["peer"]) }

// forbids is D4: the rule by which a pod may not be preempted.
func (o *oracle) forbids(i int) planner.Rule {
	p := o.pods[i]
	names := map[planner.Protection]planner.Rule{
		planner.DaemonSet: planner.RuleDaemonSet, planner.Static: planner.RuleStatic,
		planner.Leaving: planner.RuleLeaving, planner.Binding: planner.RuleBinding, planner.Refused: planner.RuleRefused,
		planner.TooSlow: planner.RuleTooSlow,
	}
	rule := names[p.protection]
	switch {
	case rule != "" && !o.without[string(rule)]:
		return rule
	case o.stranger(p) && !o.settings.PreemptForeign && !o.without["foreign"]:
		return planner.RuleForeign
	case p.priority > o.ask.priority && !o.without["priority"]:
		return daemonset.RulePriority
	case p.priority == o.ask.priority && o.without["equal priority"]:
		return daemonset.RulePriority
	}
	return ""
}

func (o *oracle) candidates() (out []int) {
	for i := range o.pods {
		if o.forbids(i) == "" {
			out = append(out, i)
		}
	}
	return out
}

// class is D5: the class of a pod, and its place in the order.
func (o *oracle) class(p *mpod) (daemonset.Class, int) {
	yunikorn := o.settings.ClassOrder == daemonset.YuniKorn && !o.without["class order"]
	switch {
	case o.without["classes"]:
		return daemonset.Regular, 0
	case o.stranger(p):
		if o.without["foreign last"] {
			return daemonset.Foreign, 0
		}
		return daemonset.Foreign, 9
	case p.optedOut && p.originator && o.without["both"]: // as in YuniKorn
		return daemonset.Originator, 2
	case p.optedOut && p.originator && o.without["both last"], p.optedOut && !p.originator:
		if yunikorn {
			return daemonset.OptedOut, 1
		}
		return daemonset.OptedOut, 3
	case p.optedOut:
		if yunikorn {
			return daemonset.OptedOut, 2
		}
		return daemonset.OptedOut, 4
	case p.originator:
		if yunikorn {
			return daemonset.Originator, 3
		}
		return daemonset.Originator, 2
	}
	return daemonset.Regular, 0
}

// share is the largest covered share of the need.
func (o *oracle) share(p *mpod) *big.Rat {
	most := new(big.Rat)
	for t := range o.types {
		if need := o.needs[t]; need > 0 {
			covered := min(p.request[t], need)
			if o.without["at most all"] {
				covered = p.request[t]
			}
			if s := big.NewRat(covered, need); s.Cmp(most) > 0 {
				most = s
			}
		}
	}
	return most
}

func (o *oracle) violates(p *mpod, consumed []int64) int {
	n := 0
	for _, b := range p.budgets {
		if o.budgets[b]-consumed[b] <= 0 {
			n++
		}
	}
	if o.without["once"] {
		return n
	}
	return min(n, 1)
}

// compare is the rest of D5, for equal classes.
func (o *oracle) compare(i, j int, consumed []int64) int {
	a, b := o.pods[i], o.pods[j]
	for _, c := range []struct {
		name string
		by   int
	}{
		{"priority order", cmp.Compare(a.priority, b.priority)},
		{"slow", cmp.Compare(planner.Rank(a.slow), planner.Rank(b.slow))},
		{"share", o.share(b).Cmp(o.share(a))},
		{"age", cmp.Compare(b.created, a.created)},
		{"budgets", cmp.Compare(o.violates(a, consumed), o.violates(b, consumed))},
		{"uid", cmp.Compare(a.uid, b.uid)},
	} {
		if c.by != 0 && !o.without[c.name] {
			return c.by
		}
	}
	return cmp.Compare(i, j)
}

func (o *oracle) rank(i int) int {
	_, rank := o.class(o.pods[i])
	return rank
}

// sequence takes the least harmful pod, and repeats with the rest.
func (o *oracle) sequence() (out []int) {
	rest, consumed := o.candidates(), make([]int64, len(o.budgets))
	for len(rest) > 0 {
		next := slices.MinFunc(rest, func(i, j int) int { return cmp.Or(cmp.Compare(o.rank(i), o.rank(j)), o.compare(i, j, consumed)) })
		if !o.without["cumulative"] {
			for _, b := range o.pods[next].budgets {
				consumed[b]++
			}
		}
		out = append(out, next)
		rest = slices.DeleteFunc(rest, func(i int) bool { return i == next })
	}
	return out
}

// deviation is how far a pod is from the request, in the type by which it is measured.
func (o *oracle) deviation(p *mpod) *big.Rat {
	yard, most := 0, new(big.Rat)
	for t, name := range o.types {
		want := o.ask.request[t]
		if want == 0 {
			continue
		}
		share := big.NewRat(1, 1)
		if o.allocatable[t] > 0 {
			share = big.NewRat(want, o.allocatable[t])
		}
		if c := share.Cmp(most); c > 0 || c == 0 && name < o.types[yard] {
			yard, most = t, share
		}
		if o.without["yardstick"] {
			break
		}
	}
	want := o.ask.request[yard]
	if want == 0 {
		return new(big.Rat)
	}
	d := big.NewRat(p.request[yard]-want, want)
	return d.Abs(d)
}

// near reports whether the deviation of a pod is within bounds.
func (o *oracle) near(p *mpod) bool {
	most := o.settings.SingleDeviationPercent
	return most == nil || o.without["deviation"] || o.deviation(p).Cmp(big.NewRat(int64(*most), 100)) <= 0
}

// single is D6: one victim.
func (o *oracle) single() (fit []int) {
	for _, i := range o.candidates() {
		if o.enough([]int{i}) && (o.near(o.pods[i]) || !o.short()) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	none := make([]int64, len(o.budgets))
	return []int{slices.MinFunc(fit, func(i, j int) int {
		near := 0
		if o.short() && !o.without["nearest"] {
			near = o.deviation(o.pods[i]).Cmp(o.deviation(o.pods[j]))
		}
		return cmp.Or(cmp.Compare(o.rank(i), o.rank(j)), near, o.compare(i, j, none))
	})}
}

// multiple is D6: of all sets that are enough, the one with the least harmful worst
// victim; among sets that share it, the next worst victim decides, and so on.
func (o *oracle) multiple() []int {
	order := o.sequence()
	found := o.least(order)
	if o.without["drop"] {
		found = nil
		for n := 0; found == nil && n <= len(order); n++ {
			if o.enough(order[:n]) {
				found = order[:n]
			}
		}
	}
	if o.without["drop order"] {
		slices.Reverse(order)
		found = o.least(order)
	}
	if most := o.settings.MaxVictims; most != nil && len(found) > int(*most) && !o.without["max victims"] {
		return nil
	}
	return found
}

func (o *oracle) least(order []int) []int {
	for bits := range 1 << len(order) {
		var set []int
		for i, pod := range order {
			if bits>>i&1 == 1 {
				set = append(set, pod)
			}
		}
		if o.enough(set) {
			return set
		}
	}
	return nil
}

// decide is D1 to D3.
func (o *oracle) decide() verdict {
	switch {
	case o.ask.overMax && !o.without["max"]:
		return verdict{outcome: planner.Refuse, stopped: daemonset.RuleMax}
	case o.enough(nil):
		return verdict{outcome: planner.Hold}
	case o.ask.never && !o.without["never"]:
		return verdict{outcome: planner.Refuse, stopped: planner.RuleNeverPreempt}
	case !o.covered(o.candidates()) && !o.without["bricks"]:
		return verdict{outcome: daemonset.NoHold, stopped: planner.RuleTooLittle}
	case !o.enough(o.candidates()) && !o.without["bricks"]:
		return verdict{outcome: daemonset.NoHold, stopped: planner.RuleFilters}
	case o.ask.held < o.settings.StartDelay && !o.without["delay"]:
		return verdict{outcome: planner.Hold, stopped: daemonset.RuleDelay}
	}
	return o.selected()
}

func (o *oracle) selected() verdict {
	selections := slices.Clone(o.settings.Selection)
	if len(selections) == 0 {
		selections = []daemonset.Selection{daemonset.Multiple}
	}
	if o.without["order of selections"] {
		slices.Reverse(selections)
	}
	if !o.short() && !o.without["one first"] {
		selections = append([]daemonset.Selection{daemonset.Single}, selections...)
		if o.without["goes on"] {
			selections = selections[:1]
		}
	}
	if o.without["fallback"] {
		selections = selections[:1]
	}
	for _, s := range selections {
		found := o.multiple
		if s == daemonset.Single {
			found = o.single
		}
		if set := found(); len(set) > 0 {
			return verdict{outcome: planner.Preempt, victims: set, selection: s}
		}
	}
	return verdict{outcome: planner.Hold, stopped: daemonset.RuleNoVictims}
}

// lawful judges any set of victims by the rules that do not compare sets, as Judge does:
// without the filters.
func (o *oracle) lawful(set []int, by daemonset.Selection) bool {
	s := o.settings
	if o.ask.overMax || o.ask.never || o.ask.held < s.StartDelay || len(set) == 0 || !o.covered(set) {
		return false
	}
	for i, pod := range set {
		others := slices.Delete(slices.Clone(set), i, i+1)
		if o.forbids(pod) != "" || o.covered(others) && !o.filters {
			return false
		}
	}
	if by == daemonset.Single {
		return len(set) == 1 && (!o.short() || o.near(o.pods[set[0]]))
	}
	return s.MaxVictims == nil || len(set) <= int(*s.MaxVictims)
}
