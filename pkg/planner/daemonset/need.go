package daemonset

import (
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// balance is what the asker needs and what is free, by type.
type balance struct {
	// free is what is free once leaving pods are gone and the holders before the asker
	// are placed (D7).
	free planner.Amounts
	// need is what must be freed of each type; 0 for nothing.
	need planner.Amounts
	// short is true if anything must be freed.
	short bool
}

// weigh computes the balance of a node for an asker.
func weigh(n *Node, request planner.Amounts) balance {
	b := balance{
		free: make(planner.Amounts, len(n.Types)),
		need: make(planner.Amounts, len(n.Types)),
	}
	b.free.Add(n.Allocatable, 1)
	for _, holder := range n.Before {
		b.free.Add(holder, -1)
	}
	for _, p := range n.Pods {
		if p.Protection != planner.Leaving {
			b.free.Add(p.Request, -1)
		}
	}
	for t := range n.Types {
		if want := request.At(t); want > 0 {
			b.need[t] = max(planner.Minus(want, b.free[t]), 0)
		}
		b.short = b.short || b.need[t] > 0
	}
	return b
}

// metBy reports whether the freed amounts meet the need.
func (b *balance) metBy(freed planner.Amounts) bool {
	for t, need := range b.need {
		if freed.At(t) < need {
			return false
		}
	}
	return true
}

// covers returns the largest share of the need that a request covers.
func (b *balance) covers(request planner.Amounts) resources.Share {
	var largest resources.Share
	for t, need := range b.need {
		if need == 0 {
			continue
		}
		covered := min(request.At(t), need)
		largest = largest.Max(resources.ShareOf(resources.Amount(covered), resources.Amount(need)))
	}
	return largest
}

// yardstick returns the type by which deviations are measured: the one of which the
// request is the largest share of the node's allocatable; among equals the first by name.
// It returns -1 if nothing is requested.
func yardstick(n *Node, request planner.Amounts) int {
	found := -1
	var largest resources.Share
	for t, name := range n.Types {
		want := request.At(t)
		if want <= 0 {
			continue
		}
		s := resources.ShareOf(resources.Amount(want), resources.Amount(n.Allocatable.At(t)))
		if c := s.Compare(largest); found < 0 || c > 0 || c == 0 && name < n.Types[found] {
			found, largest = t, s
		}
	}
	return found
}

// deviation returns how far a victim is from the request, as a share of the request.
func deviation(victim, request int64) resources.Share {
	off := planner.Minus(max(victim, request), min(victim, request))
	return resources.ShareOf(resources.Amount(off), resources.Amount(request))
}
