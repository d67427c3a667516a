package preemption

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Types numbers the resource types of plans, in the order in which they are first met.
type Types struct {
	names   []string // append only: plans keep their own length of the list
	numbers map[string]int
}

// Names returns the types by number. The caller must not change the slice.
func (t *Types) Names() []string { return t.names }

// Clone returns a copy.
func (t *Types) Clone() Types { return Types{slices.Clone(t.names), maps.Clone(t.numbers)} }

// Amounts converts a vector to amounts by number, and numbers types that are new.
func (t *Types) Amounts(v resources.Vector) planner.Amounts {
	out := make(planner.Amounts, 0, len(t.names))
	for name, amount := range v.All() {
		n, known := t.numbers[name]
		if !known {
			if t.numbers == nil {
				t.numbers = map[string]int{}
			}
			n = len(t.names)
			t.numbers[name] = n
			t.names = append(t.names, name)
		}
		for len(out) <= n {
			out = append(out, 0)
		}
		out[n] = int64(amount)
	}
	return out
}

// Snapshot has the nodes as plans see them. It is kept from one plan to the next: only
// nodes that changed are made again. A list that a plan has does not change.
type Snapshot struct {
	Types
	nodes []*planner.Node // by name; replaced, never written
	stale map[string]bool
}

// Nodes returns the nodes by name, as of the last Update.
func (s *Snapshot) Nodes() []*planner.Node { return s.nodes }

// MarkStale notes that a node must be made again.
func (s *Snapshot) MarkStale(node string) {
	if s.stale == nil {
		s.stale = map[string]bool{}
	}
	s.stale[node] = true
}

// Update makes nodes again that changed, and tells whether others are left. view returns nil
// for a node that is not there. The order is that of names, because the first node with a
// type decides its number.
func (s *Snapshot) Update(most int, view func(name string) *planner.Node) (left bool) {
	if len(s.stale) == 0 {
		return false
	}
	nodes, names := slices.Clone(s.nodes), slices.Sorted(maps.Keys(s.stale))
	for _, name := range names[:min(most, len(names))] {
		delete(s.stale, name)
		at, listed := slices.BinarySearchFunc(nodes, name, func(n *planner.Node, name string) int { return cmp.Compare(n.Name, name) })
		node := view(name)
		switch {
		case node == nil && listed:
			nodes = slices.Delete(nodes, at, at+1)
		case node == nil:
		case listed:
			nodes[at] = node
		default:
			nodes = slices.Insert(nodes, at, node)
		}
	}
	s.nodes = nodes
	return len(s.stale) > 0
}

// Check verifies the numbers of types and the order of nodes.
func (s *Snapshot) Check() error {
	for name, n := range s.numbers {
		if n >= len(s.names) || s.names[n] != name {
			return fmt.Errorf("planning snapshot: %s is not type %d", name, n)
		}
	}
	if len(s.names) != len(s.numbers) {
		return errors.New("planning snapshot: a type has two numbers")
	}
	for i := 1; i < len(s.nodes); i++ {
		if s.nodes[i-1].Name >= s.nodes[i].Name {
			return fmt.Errorf("planning snapshot: node %s is not in its place", s.nodes[i].Name)
		}
	}
	return nil
}

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
	slices.Sort(*w)
	return true
}

// Restart makes the next plan ask about all nodes again.
func (w *Sweep) Restart() { *w = nil }
