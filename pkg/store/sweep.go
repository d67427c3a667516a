package store

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// sweep has the nodes that further plans for a pod can skip: the filters refused them,
// whichever pods leave, and one plan could not ask the filters about all nodes. A plan
// goes on where the last one stopped. After all nodes, or when something changed, the
// sweep starts again.
type sweep []string // sorted

// sweeping returns the sweep of a pod, shared by its equivalence class.
func (p *pod) sweeping() *sweep {
	if p.equivalenceClass != nil {
		return &p.equivalenceClass.sweep
	}
	return &p.asks.sweep
}

// rest returns the nodes that are left.
func (w sweep) rest(nodes []*victims.Node) []*victims.Node {
	if len(w) == 0 {
		return nodes
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *victims.Node) bool {
		_, done := slices.BinarySearch(w, n.Name)
		return done
	})
}

// goOn notes the nodes of a refusal, and tells whether nodes are left.
func (w *sweep) goOn(d *victims.Decision) bool {
	if !d.More || len(d.Unfit) == 0 {
		w.end()
		return false
	}
	*w = slices.Concat(*w, d.Unfit)
	slices.SortFunc(*w, cmp.Compare)
	return true
}

// end starts again.
func (w *sweep) end() { *w = nil }
