package victims

import (
	"cmp"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// harm is what the search counts while it grows a set: it only ever grows.
type harm struct {
	optedOut    int
	violations  int64 // disruptions beyond what the budgets allow
	originators int
	priority    int64 // highest effective priority of a victim
	victims     int
}

func compareHarm(a, b harm) int {
	return cmp.Or(
		cmp.Compare(a.optedOut, b.optedOut),
		cmp.Compare(a.violations, b.violations),
		cmp.Compare(a.originators, b.originators),
		cmp.Compare(a.priority, b.priority),
		cmp.Compare(a.victims, b.victims),
	)
}

// plan is a node and a set of victims, with all that plans are compared by.
type plan struct {
	node    *Node
	victims []*candidate
	harm    harm
	waste   resources.Share // largest share of the node's allocatable freed beyond need
	created []int64         // youngest first
	edges   int             // of the tree, from the victims' queues to the common ancestors
	uids    []string        // sorted
}

// comparePlans orders plans, least harm first:
//
//  1. opted-out victims          6. what is freed beyond need
//  2. budget violations          7. creation, youngest first
//  3. originators                8. edges to the common ancestors
//  4. highest priority           9. node name
//  5. victims                   10. UIDs
func comparePlans(a, b *plan) int {
	return cmp.Or(
		compareHarm(a.harm, b.harm),
		a.waste.Compare(b.waste),
		slices.Compare(b.created, a.created),
		cmp.Compare(a.edges, b.edges),
		strings.Compare(a.node.Name, b.node.Name),
		slices.Compare(a.uids, b.uids),
	)
}

// finish fills in what the search does not count.
func (p *plan) finish(need []shortage) {
	freed := map[int]int64{}
	for _, c := range p.victims {
		p.created = append(p.created, c.pod.Created.UnixNano())
		p.uids = append(p.uids, c.pod.UID)
		p.edges += len(c.route.side)
		if c.onNode {
			for t, amount := range c.pod.Request {
				freed[t] += amount
			}
		}
	}
	slices.SortFunc(p.created, func(a, b int64) int { return cmp.Compare(b, a) })
	slices.Sort(p.uids)
	for _, n := range need {
		freed[n.typ] -= n.amount
	}
	for t, amount := range freed { // the largest is the largest in any order
		share := resources.ShareOf(resources.Amount(amount), resources.Amount(p.node.Allocatable.at(t)))
		if share.Compare(p.waste) > 0 {
			p.waste = share
		}
	}
}
