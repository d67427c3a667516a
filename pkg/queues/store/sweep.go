package store

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// sweep is the nodes that plans for a pod need not look at again: the filters
// refused them, whichever pods go, and could not be asked about all nodes in one
// plan. Where they are too many for that, one plan goes on where the last one
// stopped; when all were looked at, or something changed, it begins anew.
type sweep []string // sorted

// sweeping is the sweep of a pod, which twins share.
func (p *pod) sweeping() *sweep {
	if p.twins != nil {
		return &p.twins.sweep
	}
	return &p.asks.sweep
}

// rest are the nodes that are left to look at.
func (w sweep) rest(nodes []*victims.Node) []*victims.Node {
	if len(w) == 0 {
		return nodes
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *victims.Node) bool {
		_, done := slices.BinarySearch(w, n.Name)
		return done
	})
}

// goOn notes a refusal, and tells whether there are nodes left to look at.
func (w *sweep) goOn(d *victims.Decision) bool {
	if !d.More || len(d.Unfit) == 0 {
		w.end()
		return false
	}
	*w = slices.Concat(*w, d.Unfit)
	slices.SortFunc(*w, cmp.Compare)
	return true
}

// end begins anew.
func (w *sweep) end() { *w = nil }
