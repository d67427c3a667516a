package victims_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// numbers fills in what a decision for these victims has to say law by law.
func (o *oracle) numbers(d *victims.Decision, node int, set []int) {
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
				d.Asks = append(d.Asks, o.change(q, t, 0))
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

func (o *oracle) excesses(taken [][]int64) []victims.Excess {
	var out []victims.Excess
	for _, q := range o.path {
		for t, name := range o.types {
			if newOracle(o.model).overMax(q, t) > 0 {
				out = append(out, victims.Excess{
					Queue: o.queues[q].path, Type: name, Used: resources.Amount(o.used[q][t] + o.arriving[q][t]),
					Asked: resources.Amount(o.ask.request[t]), Taken: resources.Amount(taken[q][t]), Max: resources.Amount(o.queues[q].max[t]),
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b victims.Excess) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Type, b.Type))
	})
	return out
}

func byPlace(list []victims.Change) {
	slices.SortFunc(list, func(a, b victims.Change) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Type, b.Type))
	})
}

// change is what is taken from a queue.
func (o *oracle) change(q, t int, taken int64) victims.Change {
	c := victims.Change{
		Queue: o.queues[q].path, Type: o.types[t], Used: resources.Amount(o.used[q][t]),
		Taken: resources.Amount(taken), Guaranteed: resources.Amount(max(o.queues[q].guaranteed[t], 0)),
	}
	if slices.Contains(o.path, q) {
		c.Used += resources.Amount(o.arriving[q][t])
		c.Asked, c.Ask = resources.Amount(o.ask.request[t]), true
	}
	return c
}

// victim words a pod as a decision does.
func (o *oracle) victim(p *victims.Pod, i, node int) victims.Victim {
	v := victims.Victim{Pod: p, Node: o.nodes[o.pods[i].node].name, Priority: o.price(node, []int{i}).priority}
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

// compareNumbers compares what a plan says of itself with what it has to say.
func (o *oracle) compareNumbers(d victims.Decision, node int, set []int) error {
	for i, v := range d.Victims {
		want := o.victim(v.Pod, set[i], node)
		if diff := gocmp.Diff(want, v, unordered, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("victim %s: %s", v.UID, diff)
		}
	}
	var want victims.Decision
	o.numbers(&want, node, set)
	got := victims.Decision{
		Queue: d.Queue, Fence: d.Fence, Changes: d.Changes, Asks: d.Asks, Loses: d.Loses, OverMax: d.OverMax,
		Higher: d.Higher, Named: d.Named,
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("numbers: %s", diff)
	}
	return nil
}

var unordered = cmpopts.SortSlices(strings.Compare)

// compareRefusal compares what a refusal says of what stopped it. An oracle does
// not say what did.
func (o *oracle) compareRefusal(d victims.Decision) error {
	if d.Stopped == "" || d.Stopped == victims.RuleNeverPreempt {
		return nil
	}
	want := victims.Decision{OverMax: o.excesses(o.taken(nil)), Queue: o.queues[o.ask.queue].path, Fence: o.queues[o.fenceRoot()].path}
	got := victims.Decision{OverMax: d.OverMax, Queue: d.Queue, Fence: d.Fence, Asks: d.Asks, Loses: d.Loses, Higher: d.Higher, Named: d.Named}
	switch d.Stopped {
	case victims.Law2:
		for _, c := range d.Changes {
			q, t := o.find(c.Queue), slices.Index(o.types, c.Type)
			if q < 0 || t < 0 || o.queues[q].guaranteed[t] == unnamed || c != o.change(q, t, 0) {
				return fmt.Errorf("law 2 is said to have stopped at %+v", c)
			}
		}
	case victims.Law4:
		want.Asks = o.stoppedByLaw4()
	case victims.Law5:
		want.Loses = o.stoppedByLaw5()
	case victims.Law6:
		want.Higher = o.higher(d.Higher)
	}
	for _, c := range want.Asks {
		want.Named = append(want.Named, c.Queue)
	}
	for _, x := range want.OverMax {
		want.Named = append(want.Named, x.Queue)
	}
	if len(want.Named) == 0 {
		want.Named = []string{want.Fence}
	}
	slices.Sort(want.Named)
	want.Named = slices.Compact(want.Named)
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("refused by %s: %s", d.Stopped, diff)
	}
	return nil
}

// open calls f with the pods on whose leaves no other rule than laws 4, 5, 6 and 2
// is before it, and the types contested on each node.
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

func (o *oracle) stoppedByLaw4() []victims.Change {
	var out []victims.Change
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
					out = append(out, o.change(q, t, 0))
				}
			}
		}
	})
	byPlace(out)
	return slices.Compact(out)
}

func (o *oracle) stoppedByLaw5() []victims.Change {
	var out []victims.Change
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

// higher is the pod that law 6 keeps by least; of the one that is said to be it
// the identity is taken over.
func (o *oracle) higher(said *victims.Victim) *victims.Victim {
	least, at := int64(0), -1
	before := func(a, b int) bool {
		x, y := o.pods[a], o.pods[b]
		return cmp.Or(strings.Compare(o.nodes[x.node].name, o.nodes[y.node].name), strings.Compare(x.uid, y.uid)) < 0
	}
	o.open(func(i, _ int, s []bool) {
		victimSide, askSide, _ := o.split(o.pods[i].queue)
		over := o.effective(o.pods[i].priority, victimSide) - o.effective(o.ask.priority, askSide)
		if over <= 0 || o.pods[i].protection != victims.Unprotected || !o.mayAsk(askSide, s) || !o.overGuarantee(victimSide, s) {
			return
		}
		if at < 0 || over < least || over == least && before(i, at) {
			least, at = over, i
		}
	})
	if at < 0 || said == nil || said.UID != o.pods[at].uid {
		return &victims.Victim{Queue: fmt.Sprint("of pod ", at)}
	}
	v := o.victim(said.Pod, at, o.pods[at].node)
	v.Uses = nil
	return &v
}

// overGuarantee tells whether all queues are over their guarantee in a contested type.
func (o *oracle) overGuarantee(queues []int, s []bool) bool {
	for _, q := range queues {
		if !slices.ContainsFunc(upTo(len(o.types)), func(t int) bool {
			return s[t] && o.used[q][t] > max(o.queues[q].guaranteed[t], 0)
		}) {
			return false
		}
	}
	return true
}

// TestWrongNumbersAreNoticed plants wrong numbers in decisions.
func TestWrongNumbersAreNoticed(t *testing.T) {
	first := func(list []victims.Change, change func(*victims.Change)) bool {
		if len(list) > 0 {
			change(&list[0])
		}
		return len(list) > 0
	}
	wrong := map[string]func(d *victims.Decision) bool{
		"law 2 used":        func(d *victims.Decision) bool { return first(d.Changes, func(c *victims.Change) { c.Used++ }) },
		"law 4 used":        func(d *victims.Decision) bool { return first(d.Asks, func(c *victims.Change) { c.Used-- }) },
		"law 4 guaranteed":  func(d *victims.Decision) bool { return first(d.Asks, func(c *victims.Change) { c.Guaranteed++ }) },
		"law 4 left out":    func(d *victims.Decision) bool { all := d.Asks; d.Asks = nil; return len(all) > 0 },
		"law 5 taken":       func(d *victims.Decision) bool { return first(d.Loses, func(c *victims.Change) { c.Taken++ }) },
		"law 5 twice":       func(d *victims.Decision) bool { d.Loses = append(d.Loses, d.Loses...); return len(d.Loses) > 0 },
		"law 6 victim":      func(d *victims.Decision) bool { return len(d.Victims) > 0 && add(&d.Victims[0].Below) },
		"law 6 asker":       func(d *victims.Decision) bool { return len(d.Victims) > 0 && add(&d.Victims[0].AskBelow) },
		"law 6 kept":        func(d *victims.Decision) bool { return d.Higher != nil && add(&d.Higher.Below) },
		"law 7 fence":       func(d *victims.Decision) bool { d.Fence += ".x"; return true },
		"law 7 max":         func(d *victims.Decision) bool { all := d.OverMax; d.OverMax = nil; return len(all) > 0 },
		"named":             func(d *victims.Decision) bool { d.Named = append(d.Named, "root.x"); return true },
		"the asker's queue": func(d *victims.Decision) bool { d.Queue = "root"; return true },
	}
	noticed := map[string]int{}
	for seed := uint64(1); seed <= 1500; seed++ {
		m := generate(seed, 8)
		o := newOracle(m)
		for what, plant := range wrong {
			_, d, _ := real(m, nil)
			if d.Outcome == victims.Hold || d.Outcome == victims.Refuse && (d.Stopped == "" || m.ask.never) || !plant(&d) {
				continue
			}
			if o.facts(d) == nil {
				t.Fatalf("generate(%d, 8): wrong %s goes unnoticed in %+v", seed, what, d)
			}
			noticed[what]++
		}
	}
	for what := range wrong {
		if noticed[what] < 10 {
			t.Errorf("wrong %s was planted %d times only", what, noticed[what])
		}
	}
}

func add(n *int64) bool {
	*n++
	return true
}
