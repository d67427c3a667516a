package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// routeNodes tells watches, the planning snapshot and waiting preemptors which nodes
// changed for plans.
func (s *Store) routeNodes() {
	for _, name := range s.cache.Nodes.Take() {
		s.preemption.Watches.Change(preemption.WatchedNode(name))
		s.preemption.NodeWaits.Change(name)
		s.preemption.Snapshot.Change(name)
	}
}

// touch notes that a node changed for plans.
func (s *Store) touch(n *cache.Node) {
	s.cache.Nodes.Changed(n)
	s.routeNodes()
}

// touchPod notes that the pod changed for plans and readers.
func (s *Store) touchPod(p *pod) {
	s.history.changed(p)
	s.touch(p.On())
}

func (s *Store) touchAll() {
	s.cache.Nodes.AllChanged()
	s.routeNodes()
}

// UpsertNode sets the allocatable of a node.
func (s *Store) UpsertNode(name string, allocatable resources.Vector, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	n, more, came, changed := s.cache.Nodes.Upsert(name, allocatable)
	if !changed {
		return
	}
	s.setCapacity(s.cache.Capacity.Sum().Add(more), now)
	kind := NodeChanged
	if came {
		kind = NodeCame
	}
	s.history.noteNode(kind, n, s.cache.Capacity.Sum())
	s.history.changedNode(n)
	s.routeNodes()
	s.countTypes(cache.TypesIn(allocatable), now)
	s.askHolders(n, now)
}

// NodeChanged handles a change of a node that matters to the filters, such as its taints.
func (s *Store) NodeChanged(name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if n := s.cache.Nodes.Get(name); n != nil {
		s.touch(n)
		s.askHolders(n, now)
	}
}

// askHolders lets the holders of a changed node through although their victims are still
// there, because the filters decide whether the node can take them at all; see
// [Store.NodeRefuses] and [Store.Settle]. Pods that can run there only go first again.
func (s *Store) askHolders(n *cache.Node, now time.Time) {
	s.preemption.NodeBound.Renew(n.Name(), now)
	for _, h := range s.preemption.Holds.Holders(n.Name()) {
		if p := s.pods[h.Asker]; p != nil {
			s.rest(p, now)
		}
	}
}

// DeleteNode handles the deletion of a node. All its holds end.
func (s *Store) DeleteNode(name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	n, known, less := s.cache.Nodes.Delete(name)
	if n == nil {
		return
	}
	s.setCapacity(s.cache.Capacity.Sum().Sub(less), now)
	if known {
		s.history.noteNode(NodeWent, n, s.cache.Capacity.Sum())
	}
	s.history.changedNode(n)
	s.routeNodes()
	s.endNode(name, reservations.NodeGone, now)
}

// SetNodeSchedulable sets whether new pods may go to a node. All holds of a cordoned node
// end.
func (s *Store) SetNodeSchedulable(name string, schedulable bool, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	n, changed := s.cache.Nodes.SetSchedulable(name, schedulable)
	if changed {
		s.routeNodes()
		kind := NodeClosed
		if schedulable {
			kind = NodeOpened
			s.preemption.NodeBound.Renew(name, now)
		}
		s.history.addFact(Event{Kind: kind, Node: name})
	}
	s.history.changedNode(n)
	if !schedulable {
		s.endNode(name, reservations.NodeUnschedulable, now)
	}
}

// settleOn puts a pod with its usage on a node, or takes it off its node if name is
// empty. It may be called again.
func (s *Store) settleOn(p *pod, name string, uses resources.Vector) {
	s.history.changed(p)
	s.cache.Nodes.Place(&p.cachePod, name, uses)
	s.routeNodes()
}

// podsOn returns the pods on a node by UID.
func (s *Store) podsOn(n *cache.Node) []*pod {
	var out []*pod
	for _, p := range n.SortedPods() {
		out = append(out, s.pods[p.UID])
	}
	return out
}

// free is what will be free for a preemptor on a node once leaving pods are gone and the
// node's holders are placed; if the preemptor is a holder, only the holders before it
// count.
func (s *Store) free(n *cache.Node, asker types.UID) resources.Vector {
	free := n.Room()
	for on := range n.Pods() {
		if p := s.pods[on.UID]; p.leaves() && !p.lingers(s.preemption.HoldTimeout) {
			free = free.Add(p.Uses())
		}
	}
	for _, h := range s.preemption.Holds.Holders(n.Name()) {
		if h.Asker == asker {
			break
		}
		if !s.isPlaced(h.Asker) {
			free = free.Sub(h.Request)
		}
	}
	return free
}
