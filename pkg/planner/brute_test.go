package planner_test

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// choice is a plan with its price.
type choice struct {
	node    int
	victims []int // indexes of pods, ascending
	cost    cost
}

// outcome is that of a choice; without one it is to refuse.
func (c choice) outcome(found bool) planner.Outcome {
	switch {
	case !found:
		return planner.Refuse
	case len(c.victims) == 0:
		return planner.Wait
	}
	return planner.Preempt
}

// cost is what plans are compared by, in this order.
type cost struct {
	counts
	created []int // youngest first
	edges   int64
	node    string
	uids    []string
}

// counts are the criteria that are counts or amounts.
type counts struct {
	optedOut, violations, originators int64
	priority, slow                    int64
	victims                           int64
	waste, wasteOf                    int64
}

// best returns the best plan, and whether there is one.
func (o *oracle) best() (choice, bool) {
	var best *choice
	if o.ask.never && !o.without["never"] {
		return choice{}, false
	}
	for node := range o.nodes {
		if node > 0 && o.wide["nodes"] {
			break
		}
		s := o.contested(node)
		may := o.mayGo(node, s)
		blocked := false
		o.subsets(node, may, func(set uint, freed []int64) bool {
			if !o.roomy(node, freed, o.sums) {
				return true
			}
			if !o.law2(o.sums, s) {
				blocked = true
				return !o.isLarge(set)
			}
			best = o.better(best, node, members(may, set), freed)
			return !o.isLarge(set)
		})
		if blocked {
			o.stoppedBy[planner.Law2]++
		}
	}
	if best == nil {
		return choice{}, false
	}
	return *best, true
}

// better returns the better one of the best choice so far, nil for none, and a set on a node.
func (o *oracle) better(best *choice, node int, set []int, freed []int64) *choice {
	c := o.count(node, set, freed)
	if best == nil || o.compareCounts(c, best.cost.counts) <= 0 {
		if price := o.priced(node, set, c); best == nil || o.compare(price, best.cost) < 0 {
			return &choice{node, slices.Sorted(slices.Values(set)), price}
		}
	}
	return best
}

// mayGo returns the pods that may be preempted if the asker runs on a node, and counts
// the rules that forbid the others.
func (o *oracle) mayGo(node int, s []bool) (may []int) {
	here := 0
	for i, p := range o.pods {
		rule := o.forbids(i, node, s)
		if rule != "" {
			o.stoppedBy[rule]++
			continue
		}
		if may = append(may, i); p.node == node {
			here++
		}
	}
	o.candidates = max(o.candidates, here)
	if o.wide["half"] {
		may = may[:(len(may)+1)/2]
	}
	return may
}

// isLarge reports whether the planted bug, a search that stops at the first victim that
// is large enough alone, would stop now.
func (o *oracle) isLarge(set uint) bool { return o.wide["large"] && bits.OnesCount(set) == 1 }

// subsets calls f with every subset, and what it frees on the node, until f returns false. o.sums is
// what the subset takes. Each subset differs from the one before by one pod.
func (o *oracle) subsets(node int, of []int, f func(set uint, freed []int64) bool) {
	o.taken(nil)
	freed, set := make([]int64, len(o.types)), uint(0)
	for n := range uint(1) << len(of) {
		if n > 0 {
			k := bits.TrailingZeros(n)
			set ^= 1 << k
			sign := int64(1)
			if set>>k&1 == 0 {
				sign = -1
			}
			o.take(of[k], sign)
			o.gain(freed, node, of[k], sign)
		}
		if !f(set, freed) {
			return
		}
	}
}

// members lists the pods of a subset.
func members(of []int, set uint) (out []int) {
	for i, pod := range of {
		if set>>i&1 == 1 {
			out = append(out, pod)
		}
	}
	return out
}

// alone is what a pod as a victim adds to the price of a plan.
type alone struct {
	priority int64 // effective, strictly below the fence root
	edges    int64
}

func (o *oracle) alone(i int) *alone {
	if o.prices[i] != nil {
		return o.prices[i]
	}
	p := o.pods[i]
	var below []int
	for _, q := range o.chain(p.queue) {
		if q == o.fenceRoot() {
			break
		}
		below = append(below, q)
	}
	side, _, _ := o.split(p.queue)
	o.prices[i] = &alone{o.effective(p.priority, below), int64(len(side))}
	return o.prices[i]
}

// count is the part of a price that consists of counts and amounts.
func (o *oracle) count(node int, set []int, freed []int64) counts {
	c := counts{priority: -1 << 62, wasteOf: 1, victims: int64(len(set))}
	for _, i := range set {
		p := o.pods[i]
		if p.optedOut {
			c.optedOut++
		}
		if p.originator {
			c.originators++
		}
		if p.slow {
			c.slow++
		}
		c.priority = max(c.priority, o.alone(i).priority)
	}
	c.violations = o.violations(set)
	for t := range freed {
		waste, of := freed[t]-o.lacks[node][t], o.nodes[node].allocatable[t]
		if of == 0 { // more than nothing is the whole
			waste, of = min(waste, 1), 1
		}
		if waste*c.wasteOf > c.waste*of {
			c.waste, c.wasteOf = waste, of
		}
	}
	return c
}

// violations counts the victims that one of their budgets no longer allows, from the most
// important victim on. A victim that several budgets cover counts once.
func (o *oracle) violations(set []int) int64 {
	total, once := int64(0), int64(0)
	for _, i := range set {
		over := int64(0)
		for _, b := range o.pods[i].budgets {
			before := int64(0)
			for _, other := range set {
				if other != i && slices.Contains(o.pods[other].budgets, b) && o.moreImportant(other, i) {
					before++
				}
			}
			if before >= o.budgets[b] {
				over++
			}
		}
		total += over
		once += min(over, 1)
	}
	if o.without["once"] {
		return total
	}
	return once
}

// moreImportant reports whether a pod is before another in upstream's order.
func (o *oracle) moreImportant(i, j int) bool {
	a, b := o.pods[i], o.pods[j]
	return cmp.Or(-cmp.Compare(a.priority, b.priority), cmp.Compare(a.created, b.created), cmp.Compare(a.uid, b.uid)) < 0
}

// price returns what a plan is compared by.
func (o *oracle) price(node int, set []int) cost {
	return o.priced(node, set, o.count(node, set, o.freed(node, set)))
}

func (o *oracle) priced(node int, set []int, counted counts) cost {
	c := cost{counts: counted, node: o.nodes[node].name}
	for _, i := range set {
		c.created = append(c.created, o.pods[i].created)
		c.uids = append(c.uids, o.pods[i].uid)
		c.edges += o.alone(i).edges
	}
	slices.Sort(c.created)
	slices.Reverse(c.created)
	slices.Sort(c.uids)
	return c
}

// compare orders plans, less harm first.
func (o *oracle) compare(a, b cost) int {
	if by := o.compareCounts(a.counts, b.counts); by != 0 {
		return by
	}
	return o.firstOf([]criterion{
		{"creation", -slices.Compare(a.created, b.created)},
		{"edges", cmp.Compare(a.edges, b.edges)},
		{"node", cmp.Compare(a.node, b.node)},
		{"uids", slices.Compare(a.uids, b.uids)},
	})
}

func (o *oracle) compareCounts(a, b counts) int {
	return o.firstOf([]criterion{
		{"opted out", cmp.Compare(a.optedOut, b.optedOut)},
		{"violations", cmp.Compare(a.violations, b.violations)},
		{"originators", cmp.Compare(a.originators, b.originators)},
		{"priority", cmp.Compare(a.priority, b.priority)},
		{"slow", cmp.Compare(a.slow, b.slow)},
		{"victims", cmp.Compare(a.victims, b.victims)},
		{"waste", cmp.Compare(a.waste*b.wasteOf, b.waste*a.wasteOf)},
	})
}

// criterion is one by which two plans are compared, and its result.
type criterion struct {
	name string
	by   int
}

// firstOf returns the result of the first criterion that distinguishes the plans.
func (o *oracle) firstOf(criteria []criterion) int {
	for _, c := range criteria {
		if c.by != 0 && !o.without[c.name] {
			return c.by
		}
	}
	return 0
}
