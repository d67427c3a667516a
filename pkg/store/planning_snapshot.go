package store

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// planningSnapshot is the planning snapshot, kept from one plan to the next: a node is rebuilt
// only if it changed.
type planningSnapshot struct {
	types  []string
	typeOf map[string]int
	// nodes are sorted by name; immutable once a plan has them.
	nodes []*victims.Node
}

// amounts converts a vector to the types of the snapshot, adding unknown types.
func (w *planningSnapshot) amounts(v resources.Vector) victims.Amounts {
	out := make(victims.Amounts, 0, len(w.types))
	for name, amount := range v.All() {
		t, known := w.typeOf[name]
		if !known {
			if w.typeOf == nil {
				w.typeOf = map[string]int{}
			}
			t = len(w.types)
			w.typeOf[name] = t
			w.types = append(w.types, name) // append only: plans keep their own length of the list
		}
		for len(out) <= t {
			out = append(out, 0)
		}
		out[t] = int64(amount)
	}
	return out
}

// planningWorld returns the current planning snapshot, for plans made without the lock.
func (s *Store) planningWorld() *victims.World {
	s.renew()
	return &victims.World{
		Types: s.planningSnapshot.types, Queues: s.current(),
		Nodes: s.planningSnapshot.nodes, Budgets: s.disruptionsLeft(true),
	}
}

// renew rebuilds the nodes that changed.
func (s *Store) renew() {
	if len(s.stale) == 0 {
		return
	}
	// In the order of names, because the first node with a type decides the type's index.
	slices.SortFunc(s.stale, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	nodes := slices.Clone(s.planningSnapshot.nodes)
	for _, n := range s.stale {
		n.stale = false
		at, listed := slices.BinarySearchFunc(nodes, n.name, func(v *victims.Node, name string) int { return cmp.Compare(v.Name, name) })
		if s.nodes[n.name] != n || !n.known {
			if listed && (s.nodes[n.name] == nil || s.nodes[n.name] == n) {
				nodes = slices.Delete(nodes, at, at+1)
			}
			continue
		}
		if !listed {
			nodes = slices.Insert(nodes, at, nil)
		}
		nodes[at] = s.viewOf(n, "")
	}
	s.stale = s.stale[:0]
	s.planningSnapshot.nodes = nodes
}

// viewOf returns a node as a plan for a preemptor sees it.
func (s *Store) viewOf(n *node, asker types.UID) *victims.Node {
	pods := make([]*victims.Pod, 0, len(n.pods))
	for _, p := range n.sortedPods() {
		pods = append(pods, s.podView(p))
	}
	return victims.NewNode(n.name, s.planningSnapshot.amounts(n.allocatable), s.planningSnapshot.amounts(s.free(n, asker)), pods)
}

func (s *Store) podView(p *pod) *victims.Pod {
	v := &victims.Pod{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Leaf: queues.NoQueue,
		Request: s.planningSnapshot.amounts(p.uses), Priority: p.Priority, Created: p.Created,
		OptedOut: s.isOptedOut(p), Originator: s.originator(p), Slow: s.preemption.grace(p.Pod) > s.preemption.HoldTimeout, Protection: s.protection(p), Budgets: s.budgetsFor(p),
	}
	if p.app != nil {
		v.Leaf, v.App = p.app.leaf, p.app.name.String()
	}
	return v
}

// askOf returns a pending pod as plans see it.
func (s *Store) askOf(p *pod) *victims.Ask {
	ask := &victims.Ask{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Leaf: queues.NoQueue,
		Request: s.planningSnapshot.amounts(p.Request), Priority: p.Priority, Never: p.NeverPreempts,
	}
	if p.app != nil {
		ask.Leaf, ask.App = p.app.leaf, p.app.name.String()
	}
	return ask
}
