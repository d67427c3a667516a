package preemption

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// Sweep has the nodes that further plans for a pod, or for its equivalence class, can
// skip: the filters refused them, whichever pods leave, and one plan could not ask the
// filters about all nodes. A plan goes on where the last one stopped. After all nodes, or
// when something changed, the sweep starts again. It is sorted by name.
type Sweep []string

// Rest returns the nodes that are left, in the same order.
func (w Sweep) Rest(nodes []*planner.Node) []*planner.Node {
	if len(w) == 0 {
		return nodes
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *planner.Node) bool {
		_, done := slices.BinarySearch(w, n.Name)
		return done
	})
}

// Continue adds the nodes of a refused plan, and tells whether nodes are left.
func (w *Sweep) Continue(d *planner.Decision) bool {
	if !d.More || len(d.Unfit) == 0 {
		w.Restart()
		return false
	}
	*w = slices.Concat(*w, d.Unfit)
	slices.SortFunc(*w, cmp.Compare)
	return true
}

// Restart makes the next plan ask about all nodes again.
func (w *Sweep) Restart() { *w = nil }
