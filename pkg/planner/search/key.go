package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// harm is the criteria that the search counts while it grows a set. Adding a victim never
// reduces them.
type harm struct {
	optedOut    int
	violations  int64 // victims that one of their budgets no longer allows
	originators int
	priority    int64 // highest effective priority of a victim
	slow        int   // victims that may take longer to stop than a hold lasts
	victims     int
}

// harmless is the harm of an empty set.
var harmless = harm{priority: math.MinInt64}

func compareHarm(a, b harm) int {
	return cmp.Or(
		cmp.Compare(a.optedOut, b.optedOut),
		cmp.Compare(a.violations, b.violations),
		cmp.Compare(a.originators, b.originators),
		cmp.Compare(a.priority, b.priority),
		cmp.Compare(a.slow, b.slow),
		cmp.Compare(a.victims, b.victims),
	)
}

// add counts one more victim, in all criteria but the violations.
func (h *harm) add(c *candidate) {
	h.victims++
	h.optedOut += planner.Rank(c.Class == planner.ClassOptedOut)
	h.originators += planner.Rank(c.Originates)
	h.priority = max(h.priority, c.priority)
	h.slow += planner.Rank(c.Slow)
}

// addClass counts n victims in the criterion of a class.
func (h *harm) addClass(c planner.Class, n int) {
	switch c {
	case planner.ClassOriginator:
		h.originators += n
	case planner.ClassViolator:
		h.violations += int64(n)
	case planner.ClassOptedOut:
		h.optedOut += n
	}
}

// plan is a node and a set of victims, with everything that plans are compared by.
type plan struct {
	node    *planner.Node
	view    *contestedView
	victims []candidate
	harm    harm
	waste   resources.Share // largest share of the node's allocatable freed beyond need
	created []time.Time     // youngest first
	edges   int             // edges of the tree, from the victims' queues to the common ancestors
	uids    []string        // sorted
	// checked is true once the real filters accepted it.
	checked bool
}

// comparePlans orders plans, least harm first:
//
//  1. opted-out victims          7. what is freed beyond need
//  2. budget violations          8. creation, youngest first
//  3. originators                9. edges to the common ancestors
//  4. highest priority          10. node name
//  5. slow victims              11. UIDs
//  6. victims
func comparePlans(a, b *plan) int {
	return cmp.Or(
		compareHarm(a.harm, b.harm),
		a.waste.Compare(b.waste),
		slices.CompareFunc(b.created, a.created, time.Time.Compare),
		cmp.Compare(a.edges, b.edges),
		strings.Compare(a.node.Name, b.node.Name),
		slices.Compare(a.uids, b.uids),
	)
}

// set gives the plan these victims and computes what plans are compared by. It reuses the
// plan's lists.
func (p *plan) set(sv *survey, victims []candidate, h harm) {
	p.node, p.view, p.harm, p.edges, p.checked = sv.node, sv.contestedView, h, 0, false
	p.victims = append(p.victims[:0], victims...)
	p.created, p.uids = p.created[:0], p.uids[:0]
	for i := range victims {
		c := &victims[i]
		p.created = append(p.created, c.Pod.Created)
		p.uids = append(p.uids, c.Pod.UID)
		p.edges += len(c.path.side)
	}
	slices.SortFunc(p.created, func(a, b time.Time) int { return b.Compare(a) })
	slices.Sort(p.uids)
	p.waste = resources.Share{}
	for t := range sv.snapshot.Types {
		freed := int64(0)
		for i := range victims {
			if victims[i].onNode {
				freed = planner.Plus(freed, victims[i].request.At(t))
			}
		}
		p.waste = p.waste.Max(sv.waste(t, freed))
	}
}

// waste returns the share of the node's allocatable of a type that is freed beyond need.
func (sv *survey) waste(t int, freed int64) resources.Share {
	if freed <= 0 {
		return resources.Share{}
	}
	for _, g := range sv.goals {
		if g.depth == 0 && g.typ == t {
			freed -= g.amount
		}
	}
	return resources.ShareOf(resources.Amount(freed), resources.Amount(sv.node.Allocatable.At(t)))
}

// clone copies a plan before its lists are reused.
func (p *plan) clone() *plan {
	c := *p
	c.victims, c.created, c.uids = slices.Clone(p.victims), slices.Clone(p.created), slices.Clone(p.uids)
	return &c
}

// violations counts the violations of a list of candidates.
func (s *problem) violations(of []candidate) int64 {
	pods := make([]*planner.Pod, len(of))
	for i := range of {
		pods[i] = of[i].Pod
	}
	return planner.Violations(pods, s.snapshot.Budgets)
}
