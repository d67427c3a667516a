package cache

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Node is a node with the pods on it, of all schedulers.
type Node struct {
	name string
	// known is false for a node that has pods but no node event yet.
	known bool
	// cordoned is true while the node takes no new pods.
	cordoned    bool
	allocatable resources.Vector
	used        resources.Vector // by its pods, including leaving ones
	pods        []*Pod           // unordered; Pod.seat is the index
	generation  uint64           // of its last change for plans
	roomier     uint64           // generation of the last change that may have left more room
	refiltered  uint64           // generation when the filters were last to be asked again
}

// Name is the name of the node.
func (n *Node) Name() string { return n.name }

// Known tells whether there was an event of the node.
func (n *Node) Known() bool { return n.known }

// Cordoned tells whether the node takes no new pods.
func (n *Node) Cordoned() bool { return n.cordoned }

// Allocatable is what pods may use of the node.
func (n *Node) Allocatable() resources.Vector { return n.allocatable }

// Room is what is free now. Leaving pods still use the node.
func (n *Node) Room() resources.Vector { return n.allocatable.Sub(n.used) }

// Generation is a number that is another one after each change of the node for plans, and
// never comes again.
func (n *Node) Generation() uint64 { return n.generation }

// RoomierSince tells whether the node may have got more room after a generation of the
// table.
func (n *Node) RoomierSince(generation uint64) bool { return n.roomier > generation }

// NoteRefiltered notes that results of filters from before the last change of the node are out of
// date: it changed for the filters, or a pod that was to leave stays.
func (n *Node) NoteRefiltered() { n.refiltered = n.generation }

// RefilteredSince tells whether the filters may judge the node otherwise than at a
// generation of the table.
func (n *Node) RefilteredSince(generation uint64) bool { return n.refiltered > generation }

// Pods yields the pods on the node in no particular order.
func (n *Node) Pods() iter.Seq[*Pod] { return slices.Values(n.pods) }

// HasPodOf tells whether a pod of one of these namespaces is on the node.
func (n *Node) HasPodOf(namespaces map[string]bool) bool {
	return slices.ContainsFunc(n.pods, func(p *Pod) bool { return namespaces[p.Namespace] })
}

// Len is how many pods are on the node.
func (n *Node) Len() int { return len(n.pods) }

// SortedPods returns the pods on the node by UID.
func (n *Node) SortedPods() []*Pod {
	out := slices.Clone(n.pods)
	slices.SortFunc(out, func(a, b *Pod) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// put adds a pod that is not on the node.
func (n *Node) put(p *Pod) {
	p.seat = int32(len(n.pods))
	n.pods = append(n.pods, p)
}

// takeOff removes a pod that is on the node.
func (n *Node) takeOff(p *Pod) {
	last := len(n.pods) - 1
	n.pods[p.seat] = n.pods[last]
	n.pods[p.seat].seat = p.seat
	n.pods[last] = nil
	n.pods = n.pods[:last]
}

// Nodes are the nodes that are known or have pods, by name. Make one with NewNodes.
//
// A node changes for plans when a plan for it may have another result: its allocatable, its cordon,
// what filters see of it, its pods (what they use, whether they leave, how they are protected), its
// holds, or the pods that wait there; all nodes with the settings. Changed notes that until Take.
// RouteNodes of package model tells the watches, the node-bound pods and the planning snapshot.
type Nodes struct {
	byName     map[string]*Node
	generation uint64
	arrivals   uint64
	changed    []string
}

// NewNodes returns an empty table.
func NewNodes() Nodes { return Nodes{byName: map[string]*Node{}} }

// Get returns a node; nil if there is none.
func (t *Nodes) Get(name string) *Node { return t.byName[name] }

// Allocatable is what pods may use of a node; empty if it is not known.
func (t *Nodes) Allocatable(name string) resources.Vector {
	if n := t.byName[name]; n != nil {
		return n.allocatable
	}
	return resources.Vector{}
}

// All yields all nodes in no particular order.
func (t *Nodes) All() iter.Seq[*Node] { return maps.Values(t.byName) }

// Arrivals is how often a pod came to a node or grew there so far.
func (t *Nodes) Arrivals() uint64 { return t.arrivals }

// Generation is the number of the last change of any node for plans.
func (t *Nodes) Generation() uint64 { return t.generation }

// Take returns the names of the nodes that changed for plans since the last call, once for
// each change. A node may be gone.
func (t *Nodes) Take() []string { return Take(&t.changed) }

// Changed notes that a node changed for plans. nil stands for no node.
func (t *Nodes) Changed(n *Node) {
	if n == nil {
		return
	}
	t.generation++
	n.generation = t.generation
	t.changed = append(t.changed, n.name)
}

// ChangedRoom notes a change of a node that may leave more room on it. nil stands for no node.
func (t *Nodes) ChangedRoom(n *Node) {
	if n != nil {
		t.Changed(n)
		n.roomier = n.generation
	}
}

// AllChanged notes that all nodes changed for plans.
func (t *Nodes) AllChanged() {
	for _, n := range t.byName {
		t.Changed(n)
	}
}

// of returns a node; it creates one if there is none.
func (t *Nodes) of(name string) *Node {
	n := t.byName[name]
	if n == nil {
		n = &Node{name: name}
		t.byName[name] = n
		t.Changed(n)
	}
	return n
}

// Upsert sets the allocatable of a node. It returns by how much the capacity of all nodes
// changes, and whether the node was not known or had another allocatable.
func (t *Nodes) Upsert(name string, allocatable resources.Vector) (n *Node, more resources.Vector, came, changed bool) {
	n = t.of(name)
	if n.known && n.allocatable.Equal(allocatable) {
		return n, resources.Vector{}, false, false
	}
	came, more = !n.known, allocatable.Sub(n.allocatable)
	n.known, n.allocatable = true, allocatable
	t.ChangedRoom(n)
	return n, more, came, true
}

// SetSchedulable sets whether new pods may go to a node, and tells whether this is a change.
func (t *Nodes) SetSchedulable(name string, schedulable bool) (n *Node, changed bool) {
	n = t.of(name)
	if changed = n.cordoned == schedulable; changed {
		t.ChangedRoom(n)
	}
	n.cordoned = !schedulable
	return n, changed
}

// Delete handles the deletion of a node, which keeps its pods until they are gone. It
// returns nil if there is no such node, whether there was an event of it, and by how much
// the capacity of all nodes shrinks.
func (t *Nodes) Delete(name string) (n *Node, known bool, less resources.Vector) {
	n = t.byName[name]
	if n == nil {
		return nil, false, less
	}
	known, less = n.known, n.allocatable
	n.known, n.cordoned, n.allocatable = false, false, resources.Vector{}
	t.Changed(n)
	t.drop(n)
	return n, known, less
}

// drop forgets a node that is gone and empty.
func (t *Nodes) drop(n *Node) {
	if !n.known && len(n.pods) == 0 && t.byName[n.name] == n {
		t.Changed(n)
		delete(t.byName, n.name)
	}
}

// Unusable returns why a node cannot be held; none if it can.
func (t *Nodes) Unusable(name string) (reservations.End, reasons.Reason) {
	switch n := t.byName[name]; {
	case n == nil || !n.known:
		return reservations.NodeGone, reasons.New(reasons.HoldNodeGone, "node %s is not there", name)
	case n.cordoned:
		return reservations.NodeUnschedulable, reasons.New(reasons.HoldNodeUnschedulable, "node %s takes no new pods", name)
	}
	return "", reasons.Reason{}
}

// Place puts a pod with its usage on a node, or takes it off its node if the name is
// empty. It may be called again, with another node or usage.
func (t *Nodes) Place(p *Pod, name string, uses resources.Vector) {
	before, used := p.on, p.uses
	if before != nil {
		before.used = before.used.Sub(p.uses)
		t.ChangedRoom(before)
		if before.name != name {
			before.takeOff(p)
			t.drop(before)
		}
	}
	p.on, p.uses = nil, resources.Vector{}
	if name == "" {
		return
	}
	n := t.of(name)
	if before != n {
		n.put(p)
	}
	if before != n || !used.Covers(uses) {
		t.arrivals++
		p.arrival = t.arrivals
	}
	n.used = n.used.Add(uses)
	p.on, p.uses = n, uses
	t.Changed(n)
}

// Capacity is the sum of what pods may use of all nodes.
func (t *Nodes) Capacity() resources.Vector {
	var sum resources.Vector
	for _, n := range t.byName {
		sum = sum.Add(n.allocatable)
	}
	return sum
}

// Check verifies nodes and pods against each other. pods are all pods.
func (t *Nodes) Check(pods iter.Seq[*Pod]) error {
	var errs []error
	placed := map[*Node]int{}
	for p := range pods {
		switch n := p.on; {
		case n == nil && !p.uses.IsZero():
			errs = append(errs, fmt.Errorf("pod %s/%s uses %v of no node", p.Namespace, p.Name, p.uses))
		case n == nil:
		case t.byName[n.name] != n || int(p.seat) >= len(n.pods) || n.pods[p.seat] != p:
			errs = append(errs, fmt.Errorf("node %s: pod %s/%s is not there", n.name, p.Namespace, p.Name))
		default:
			placed[n]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		n := t.byName[name]
		var used resources.Vector
		for _, p := range n.pods {
			used = used.Add(p.uses)
		}
		switch {
		case len(n.pods) != placed[n]:
			errs = append(errs, fmt.Errorf("node %s has %d pods, and %d are on it", name, len(n.pods), placed[n]))
		case !used.Equal(n.used):
			errs = append(errs, fmt.Errorf("node %s: used %v, its pods use %v", name, n.used, used))
		}
	}
	return errors.Join(errs...)
}
