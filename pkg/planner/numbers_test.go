package planner_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// numbers sets what a decision for these victims must report, law by law.
func (o *oracle) numbers(d *planner.Decision, node int, set []int) {
	s, taken := o.contested(node), o.taken(set)
	d.Queue, d.Fence = o.queues[o.ask.queue].path, o.queues[o.fenceRoot()].path
	asks, loses := map[int]bool{}, map[int]bool{}
	for _, i := range set {
		victimSide, askSide, _ := o.split(o.pods[i].queue)
		for _, q := range askSide {
			asks[q] = true
		}
		for _, q := range victimSide {
			loses[q] = true
		}
	}
	for q := range o.queues {
		for t := range o.types {
			g := o.queues[q].guaranteed[t]
			if s[t] && asks[q] && g != unnamed {
				d.Asks = append(d.Asks, o.standing(q, t))
			}
			if s[t] && loses[q] && o.used[q][t] > max(g, 0) && taken[q][t] > 0 {
				d.Loses = append(d.Loses, o.change(q, t, taken[q][t]))
			}
			if taken[q][t] > 0 && g != unnamed {
				d.Changes = append(d.Changes, o.change(q, t, taken[q][t]))
			}
		}
	}
	d.OverMax = o.excesses(taken)
	byPlace(d.Asks)
	byPlace(d.Loses)
	byPlace(d.Changes)
}

func (o *oracle) excesses(taken [][]int64) (out []planner.Excess) {
	overs := newOracle(o.model).overs // without planted bugs
	for _, q := range o.path {
		for t, name := range o.types {
			if overs[q][t] > 0 {
				out = append(out, planner.Excess{
					Queue: o.queues[q].path, Type: name, Used: resources.Amount(o.used[q][t] + o.arriving[q][t]),
					Asked: resources.Amount(o.ask.request[t]), Taken: resources.Amount(taken[q][t]), Max: resources.Amount(o.queues[q].max[t]),
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b planner.Excess) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Type, b.Type))
	})
	return out
}

func byPlace(list []planner.Change) {
	slices.SortFunc(list, func(a, b planner.Change) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Type, b.Type))
	})
}

// change returns what is taken from a queue.
func (o *oracle) change(q, t int, taken int64) planner.Change {
	c := planner.Change{
		Queue: o.queues[q].path, Type: o.types[t], Used: resources.Amount(o.used[q][t]),
		Taken: resources.Amount(taken), Guaranteed: resources.Amount(max(o.queues[q].guaranteed[t], 0)),
	}
	if slices.Contains(o.path, q) {
		c.Used += resources.Amount(o.arriving[q][t])
		c.Asked, c.Ask = resources.Amount(o.ask.request[t]), true
	}
	return c
}

// standing returns the numbers that decide whether a queue may ask.
func (o *oracle) standing(q, t int) planner.Change {
	c := o.change(q, t, 0)
	c.Used += resources.Amount(o.departing[q][t])
	return c
}

// victim converts a pod, with the types in the order of the model, to a decision's victim.
func (o *oracle) victim(i, node int) planner.Victim {
	same := func(a []int64) planner.Amounts { return a }
	v := planner.Victim{
		Pod:  o.pods[i].pod(upTo(len(o.queues)), upTo(len(o.budgets)), same),
		Node: o.nodes[o.pods[i].node].name, Priority: o.price(node, []int{i}).priority,
	}
	if o.pods[i].queue < 0 {
		return v
	}
	victimSide, askSide, lca := o.split(o.pods[i].queue)
	v.Queue, v.Common = o.queues[o.pods[i].queue].path, o.queues[lca].path
	v.Below, v.AskBelow = o.effective(o.pods[i].priority, victimSide), o.effective(o.ask.priority, askSide)
	for t, in := range o.contested(node) {
		if in && o.pods[i].request[t] > 0 {
			v.Uses = append(v.Uses, o.types[t])
		}
	}
	return v
}

// refusal is the decision without a plan, except for the queues that law 2 protected.
func (o *oracle) refusal() planner.Decision {
	d := planner.Decision{
		Stopped: o.stopped(), OverMax: o.excesses(o.taken(nil)), Queue: o.queues[o.ask.queue].path, Fence: o.queues[o.fenceRoot()].path,
	}
	switch d.Stopped {
	case planner.Law4:
		d.Asks = o.stoppedByLaw4()
	case planner.Law5:
		d.Loses = o.stoppedByLaw5()
	case planner.Law6:
		d.Higher = o.higher()
	}
	d.Named = append(each(d.Asks, func(c planner.Change) string { return c.Queue }),
		each(d.OverMax, func(x planner.Excess) string { return x.Queue })...)
	if len(d.Named) == 0 {
		d.Named = []string{d.Fence}
	}
	slices.Sort(d.Named)
	d.Named = slices.Compact(d.Named)
	return d
}

// stopped returns the rule that a refusal must name: law 2 if the pods that may be
// preempted one by one would together free enough; otherwise that they are too few, if
// there are any; otherwise the law or other rule that excludes most pods.
func (o *oracle) stopped() planner.Rule {
	if o.ask.never {
		return planner.RuleNeverPreempt
	}
	tooFew := false
	for node := range o.nodes {
		s := o.contested(node)
		var may []int
		for i, p := range o.pods {
			here := p.node == node
			if here && o.rejects(i, s) == "" || !here && o.forbids(i, node, s) == "" && o.law2(o.taken([]int{i}), s) {
				may = append(may, i)
				tooFew = tooFew || here
			}
		}
		if o.room(node, may, o.taken(may)) {
			return planner.Law2
		}
	}
	if tooFew {
		return planner.RuleTooLittle
	}
	most := planner.Rejection{}
	for _, r := range o.rejected("") {
		if isLaw(most.Rule) == isLaw(r.Rule) && r.Pods > most.Pods || isLaw(r.Rule) && !isLaw(most.Rule) {
			most = r
		}
	}
	return most.Rule
}

// isLaw reports whether a rule is one that the administrator could change.
func isLaw(r planner.Rule) bool {
	return strings.HasPrefix(string(r), "law ") && r != planner.Law3 || r == planner.RuleDisabled
}

// rejected counts the pods that a rule excludes on the nodes, in order of their names, up
// to last; empty means all.
func (o *oracle) rejected(last string) []planner.Rejection {
	pods := map[planner.Rule]int{}
	for i, p := range o.pods {
		if name := o.nodes[p.node].name; last != "" && name > last {
			continue
		}
		if rule := o.rejects(i, o.contested(p.node)); rule != "" {
			pods[rule]++
		}
	}
	return each(slices.Sorted(maps.Keys(pods)), func(rule planner.Rule) planner.Rejection {
		return planner.Rejection{Rule: rule, Pods: pods[rule]}
	})
}

// mustReject returns the counts that a decision must report, by rule. If the asker fits
// on a node, that node is the last one that was examined.
func (o *oracle) mustReject(d planner.Decision) []planner.Rejection {
	switch {
	case d.Outcome == planner.Wait:
		return o.rejected(d.Node)
	case o.ask.never:
		return nil
	}
	out := o.rejected("")
	for i := range out {
		if d.Outcome == planner.Refuse && out[i].Rule == planner.RuleRefused {
			out[i].Named = o.undeletable()
		}
	}
	return out
}

// undeletable names the pods that the API server refused to delete.
func (o *oracle) undeletable() (out []string) {
	for _, p := range o.pods {
		if p.protection == planner.Refused {
			out = append(out, fmt.Sprintf("default/%s on node %s ()", p.uid, o.nodes[p.node].name))
		}
	}
	slices.Sort(out)
	return out
}

// open calls f with the pods of leaves to which no rule before laws 4, 5, 6 and 2
// applies, and the types contested on each node.
func (o *oracle) open(f func(i, node int, s []bool)) {
	for node := range o.nodes {
		for i, p := range o.pods {
			if p.queue < 0 || p.queue == o.ask.queue || o.disabled(p.queue) || p.node != node {
				continue
			}
			if _, _, lca := o.split(p.queue); slices.Contains(o.chain(lca), o.fenceRoot()) {
				f(i, node, o.contested(node))
			}
		}
	}
}

func (o *oracle) stoppedByLaw4() (out []planner.Change) {
	o.open(func(i, _ int, s []bool) {
		_, askSide, _ := o.split(o.pods[i].queue)
		if o.mayAsk(askSide, s) {
			return
		}
		for _, q := range askSide {
			for t, g := range o.queues[q].guaranteed {
				only := slices.Repeat([]bool{false}, len(s))
				only[t] = s[t]
				if s[t] && g != unnamed && !o.mayAsk([]int{q}, only) {
					out = append(out, o.standing(q, t))
				}
			}
		}
	})
	byPlace(out)
	return slices.Compact(out)
}

func (o *oracle) stoppedByLaw5() (out []planner.Change) {
	o.open(func(i, _ int, s []bool) {
		victimSide, askSide, _ := o.split(o.pods[i].queue)
		if !o.mayAsk(askSide, s) {
			return
		}
		for _, q := range victimSide {
			over := false
			for t := range o.types {
				over = over || s[t] && o.used[q][t] > max(o.queues[q].guaranteed[t], 0)
			}
			for t := range o.types {
				if s[t] && !over {
					out = append(out, o.change(q, t, 0))
				}
			}
		}
	})
	byPlace(out)
	return slices.Compact(out)
}

// higher returns the pod that law 6 protects by the smallest difference.
func (o *oracle) higher() *planner.Victim {
	least, at := int64(0), -1
	before := func(a, b int) bool {
		x, y := o.pods[a], o.pods[b]
		return cmp.Or(strings.Compare(o.nodes[x.node].name, o.nodes[y.node].name), strings.Compare(x.uid, y.uid)) < 0
	}
	o.open(func(i, _ int, s []bool) {
		victimSide, askSide, _ := o.split(o.pods[i].queue)
		over := o.effective(o.pods[i].priority, victimSide) - o.effective(o.ask.priority, askSide)
		if over <= 0 || o.pods[i].protection != planner.Unprotected || !o.mayAsk(askSide, s) || !o.overGuarantee(victimSide, s, nil) {
			return
		}
		if at < 0 || over < least || over == least && before(i, at) {
			least, at = over, i
		}
	})
	if at < 0 {
		return nil
	}
	v := o.victim(at, o.pods[at].node)
	v.Uses = nil
	return &v
}

// TestWrongNumbersAreNoticed plants wrong numbers in decisions.
func TestWrongNumbersAreNoticed(t *testing.T) {
	first := func(list []planner.Change, change func(*planner.Change)) bool {
		if len(list) > 0 {
			change(&list[0])
		}
		return len(list) > 0
	}
	wrong := map[string]func(d *planner.Decision) bool{
		"law 2 used":        func(d *planner.Decision) bool { return first(d.Changes, func(c *planner.Change) { c.Used++ }) },
		"law 4 used":        func(d *planner.Decision) bool { return first(d.Asks, func(c *planner.Change) { c.Used-- }) },
		"law 4 guaranteed":  func(d *planner.Decision) bool { return first(d.Asks, func(c *planner.Change) { c.Guaranteed++ }) },
		"law 4 left out":    func(d *planner.Decision) bool { all := d.Asks; d.Asks = nil; return len(all) > 0 },
		"law 5 taken":       func(d *planner.Decision) bool { return first(d.Loses, func(c *planner.Change) { c.Taken++ }) },
		"law 5 twice":       func(d *planner.Decision) bool { d.Loses = append(d.Loses, d.Loses...); return len(d.Loses) > 0 },
		"law 6 victim":      func(d *planner.Decision) bool { return len(d.Victims) > 0 && add(&d.Victims[0].Below) },
		"law 6 asker":       func(d *planner.Decision) bool { return len(d.Victims) > 0 && add(&d.Victims[0].AskBelow) },
		"law 6 kept":        func(d *planner.Decision) bool { return d.Higher != nil && add(&d.Higher.Below) },
		"law 7 fence":       func(d *planner.Decision) bool { d.Fence += ".x"; return true },
		"law 7 max":         func(d *planner.Decision) bool { all := d.OverMax; d.OverMax = nil; return len(all) > 0 },
		"named":             func(d *planner.Decision) bool { d.Named = append(d.Named, "root.x"); return true },
		"rejected":          func(d *planner.Decision) bool { all := d.Rejected; d.Rejected = nil; return len(all) > 0 },
		"rejected by law 2": func(d *planner.Decision) bool { return miscount(d, planner.Law2) },
		"rejected by law 4": func(d *planner.Decision) bool { return miscount(d, planner.Law4) },
		"rejected by law 6": func(d *planner.Decision) bool { return miscount(d, planner.Law6) },
		"rejected for need": func(d *planner.Decision) bool { return miscount(d, planner.RuleNotNeeded) },
		"stopped by law 2":  func(d *planner.Decision) bool { return blame(d, planner.Law2, planner.RuleTooLittle) },
		"stopped by size":   func(d *planner.Decision) bool { return blame(d, planner.RuleTooLittle, planner.Law2) },
		"stopped by law 4":  func(d *planner.Decision) bool { return blame(d, planner.Law4, planner.Law5) },
		"stopped by law 6":  func(d *planner.Decision) bool { return blame(d, planner.Law6, "") },
		"the asker's queue": func(d *planner.Decision) bool { d.Queue = "root"; return true },
	}
	for what, plant := range wrong {
		notices(t, "wrong "+what, "", 50, func(seed uint64) (bool, error) {
			m := generate(seed, 8)
			_, d, _ := real(m, nil)
			if d.Outcome == planner.Wait || d.Outcome == planner.Refuse && (d.Stopped == "" || m.ask.never) || !plant(&d) {
				return false, nil
			}
			return true, newOracle(m).facts(d)
		})
	}
}

func add(n *int64) bool {
	*n++
	return true
}

// miscount counts one pod too few of a rule.
func miscount(d *planner.Decision, rule planner.Rule) bool {
	i := slices.IndexFunc(d.Rejected, func(r planner.Rejection) bool { return r.Rule == rule })
	if i >= 0 {
		d.Rejected[i].Pods--
	}
	return i >= 0
}

// blame names another rule.
func blame(d *planner.Decision, right, wrong planner.Rule) bool {
	if d.Stopped != right {
		return false
	}
	d.Stopped = wrong
	return true
}
