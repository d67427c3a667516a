package store

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// node is a node with the pods on it, of all schedulers.
type node struct {
	name string
	// known is false for a node that has pods but no node event yet.
	known bool
	// cordoned is true while the node takes no new pods.
	cordoned    bool
	allocatable resources.Vector
	used        resources.Vector // by its pods, including leaving ones
	pods        []*pod           // unordered; pod.seat is the index
	// generation counts the changes of the node for plans.
	generation uint64
	history.Mark[NodeRecord]
}

// nodeOf returns the record of a node; it creates one if there is none.
func (s *Store) nodeOf(name string) *node {
	n := s.nodes[name]
	if n == nil {
		n = &node{name: name}
		s.nodes[name] = n
		s.touch(n)
	}
	return n
}

// touch notes that the node changed for plans.
func (s *Store) touch(n *node) {
	s.preemption.Watches.Change(preemption.WatchedNode(n.name))
	n.generation++
	s.preemption.NodeWaits.Change(n.name)
	s.preemption.Snapshot.Change(n.name)
}

// touchPod notes that the pod changed for plans and readers.
func (s *Store) touchPod(p *pod) {
	s.changed(p)
	if p.on != nil {
		s.touch(p.on)
	}
}

func (s *Store) touchAll() {
	for _, n := range s.nodes {
		s.touch(n)
	}
}

// UpsertNode sets the allocatable of a node.
func (s *Store) UpsertNode(name string, allocatable resources.Vector, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	n := s.nodeOf(name)
	if n.known && n.allocatable.Equal(allocatable) {
		return
	}
	s.setCapacity(s.cache.Capacity.Sum().Sub(n.allocatable).Add(allocatable), now)
	kind := NodeChanged
	if !n.known {
		kind = NodeCame
	}
	n.known, n.allocatable = true, allocatable
	s.noteNode(kind, n)
	s.register.changedNode(n)
	s.touch(n)
	s.countTypes(cache.TypesIn(allocatable), now)
	s.askHolders(n, now)
}

// NodeChanged handles a change of a node that matters to the filters, such as its taints.
func (s *Store) NodeChanged(name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if n := s.nodes[name]; n != nil {
		s.touch(n)
		s.askHolders(n, now)
	}
}

// askHolders lets the holders of a changed node through although their victims are still
// there, because the filters decide whether the node can take them at all; see
// [Store.NodeRefuses] and [Store.Settle]. Pods that can run there only go first again.
func (s *Store) askHolders(n *node, now time.Time) {
	s.preemption.NodeBound.Renew(n.name, now)
	for _, h := range s.preemption.Holds.Holders(n.name) {
		if p := s.pods[h.Asker]; p != nil {
			s.rest(p, now)
		}
	}
}

// DeleteNode handles the deletion of a node. All its holds end.
func (s *Store) DeleteNode(name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	n := s.nodes[name]
	if n == nil {
		return
	}
	s.setCapacity(s.cache.Capacity.Sum().Sub(n.allocatable), now)
	if n.known {
		s.noteNode(NodeWent, n)
	}
	n.known, n.cordoned, n.allocatable = false, false, resources.Vector{}
	s.register.changedNode(n)
	s.touch(n)
	s.endNode(name, reservations.NodeGone, now)
	s.dropNode(n)
}

// SetNodeSchedulable sets whether new pods may go to a node. All holds of a cordoned node
// end.
func (s *Store) SetNodeSchedulable(name string, schedulable bool, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	n := s.nodeOf(name)
	if n.cordoned != !schedulable {
		s.touch(n)
		kind := NodeClosed
		if schedulable {
			kind = NodeOpened
			s.preemption.NodeBound.Renew(name, now)
		}
		s.history.note(Happening{Kind: kind, Node: name})
	}
	n.cordoned = !schedulable
	s.register.changedNode(n)
	if n.cordoned {
		s.endNode(name, reservations.NodeUnschedulable, now)
	}
}

// dropNode forgets a node that is gone and empty.
func (s *Store) dropNode(n *node) {
	if !n.known && len(n.pods) == 0 && !s.preemption.NodeWaits.IsAwaited(n.name) && s.nodes[n.name] == n {
		delete(s.nodes, n.name)
		s.touch(n) // removes it from planning snapshots, too
	}
}

// put adds a pod that is not on the node.
func (n *node) put(p *pod) {
	p.seat = int32(len(n.pods))
	n.pods = append(n.pods, p)
}

// takeOff removes a pod that is on the node.
func (n *node) takeOff(p *pod) {
	last := len(n.pods) - 1
	n.pods[p.seat] = n.pods[last]
	n.pods[p.seat].seat = p.seat
	n.pods[last] = nil
	n.pods = n.pods[:last]
}

// has tells whether the pod's seat on the node is right.
func (n *node) has(p *pod) bool { return int(p.seat) < len(n.pods) && n.pods[p.seat] == p }

// settleOn puts a pod with its usage on a node, or takes it off its node if name is
// empty. It may be called again.
func (s *Store) settleOn(p *pod, name string, uses resources.Vector) {
	s.changed(p)
	before := p.on
	if p.on != nil {
		p.on.used = p.on.used.Sub(p.uses)
		s.touch(p.on)
		if p.on.name != name {
			p.on.takeOff(p)
			s.dropNode(p.on)
		}
	}
	p.on, p.uses = nil, resources.Vector{}
	if name == "" {
		return
	}
	n := s.nodeOf(name)
	if before != n {
		n.put(p)
		s.arrivals++
		p.arrival = s.arrivals
	}
	n.used = n.used.Add(uses)
	p.on, p.uses = n, uses
	s.touch(n)
}

// unusable returns why a node cannot be held; none if it can.
func (s *Store) unusable(name string) (reservations.End, reasons.Reason) {
	switch n := s.nodes[name]; {
	case n == nil || !n.known:
		return reservations.NodeGone, reasons.New(reasons.HoldNodeGone, "node %s is not there", name)
	case n.cordoned:
		return reservations.NodeUnschedulable, reasons.New(reasons.HoldNodeUnschedulable, "node %s takes no new pods", name)
	}
	return "", reasons.Reason{}
}

// room is what is free on a node now. Leaving pods still use it.
func (n *node) room() resources.Vector { return n.allocatable.Sub(n.used) }

// free is what will be free for a preemptor on a node once leaving pods are gone and the
// node's holders are placed; if the preemptor is a holder, only the holders before it
// count.
func (s *Store) free(n *node, asker types.UID) resources.Vector {
	free := n.room()
	for _, p := range n.pods {
		if p.leaves() && !s.lingers(p) {
			free = free.Add(p.uses)
		}
	}
	for _, h := range s.preemption.Holds.Holders(n.name) {
		if h.Asker == asker {
			break
		}
		if !s.isPlaced(h.Asker) {
			free = free.Sub(h.Request)
		}
	}
	return free
}

// sortedPods returns the pods on a node by UID.
func (n *node) sortedPods() []*pod {
	out := slices.Clone(n.pods)
	slices.SortFunc(out, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
	return out
}
