package store

import (
	"fmt"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// roomChecks counts the pods that checkRoom compared with a pod that was about to get room
// (law P2a), and roomErrors what it found where the store refused the pod then.
var roomChecks, roomErrors int

// checkRoom returns an error if a pod is about to get room on a node that another pod needs
// more: its turn can come, it has the same priority, it fits the node as it is, its quotas
// allow it without the first one, the node or a max has no room for both, and its queue is
// below its guarantee while that of the first pod is not.
func (s *script) checkRoom(got *model.Pod, node string) error {
	n := s.store.model.Cache.Nodes.Get(node)
	if n == nil || got.App == nil || got.Asker.HoldsNode() || got.RequiredNode != "" || got.PodGroup != nil || got.GaveWay >= admission.MostGivenWay {
		return nil
	}
	tree, rest := s.store.Snapshot(), n.Room().Sub(got.Request)
	for _, p := range s.store.model.SortedPods() {
		switch {
		case p == got, p.App == nil, p.RequiredNode != "", p.PodGroup != nil, p.Priority != got.Priority,
			!s.hasTurn(p, got, n),
			!cache.Fits(p.Pod, n.Room()), rest.Covers(p.Request) && s.maxCovers(got, p), !s.mayRunWithout(got, p):
			continue
		}
		roomChecks++
		theirs := tree.Queue(got.App.Leaf)
		if ours := tree.Queue(p.App.Leaf); s.owed(tree, ours, theirs, p.Request, resources.Vector{}) && !s.owed(tree, theirs, ours, got.Request, got.Request) {
			return fmt.Errorf("%s gets room on node %s that %s waits for, whose queue is below its guarantee", got.Name, node, p.Name)
		}
	}
	return nil
}

// hasTurn tells whether the turn of a pod on a node can come without a further event: it is in
// the order, backs off, or found no node before this one had its room; or it has a slot, and
// the scheduler's queue would not have tried it before the pod that is about to get the room.
func (s *script) hasTurn(p, got *model.Pod, n *cache.Node) bool {
	switch p.State {
	case state.Queued, state.BackingOff, state.Admitted:
		return true
	case state.Unschedulable:
		return n.RoomierSince(p.EquivalenceClass.NodesSeen(p.NodesGeneration))
	case state.Scheduling:
		return !s.store.model.Pending.Keys.Before(p.UID, got.UID)
	}
	return false
}

// maxCovers tells whether every max has room for two pods without a node.
func (s *script) maxCovers(got, p *model.Pod) bool {
	both := queues.NewDemand()
	both.Add(s.store.model.Cache.Tree(), got.App.Leaf, got.App.Owner, got.Request, false)
	return queues.Admit(s.store.model.Cache.Tree(), p.App.Leaf, p.Request, queues.OnDemand(both)).OK()
}

// mayRunWithout tells whether the quotas allow a pod if another one has no slot.
func (s *script) mayRunWithout(got, p *model.Pod) bool {
	books, in := &s.store.model.Cache.Books, got.In()
	if p.State.HasSlot() {
		return true
	}
	books.Charge(&got.CachePod, got.Amount(), in&^cache.Admitted)
	defer books.Charge(&got.CachePod, got.Amount(), in)
	return books.CheckQuota(&p.App.CacheApp, p.App.Counted(), p.Request, queues.OnCommitted).OK()
}

// owed tells whether a queue is below its guarantee in a type that its next pod requests:
// all queues on its path that guarantee the type are, down from the first one that is not
// on the path of the other queue. The usage of own is not counted. With strict guarantees the
// queue must stay within them with the pod.
func (s *script) owed(tree *queues.Snapshot, queue, other *queues.Queue, request, own resources.Vector) bool {
	below, reached := map[string]bool{}, map[string]bool{}
	for q := queue; !q.IsRoot(); q = tree.Queue(q.Parent) {
		if strings.HasPrefix(other.Path+".", q.Path+".") {
			break
		}
		for kind := range request.All() {
			if g, named := q.Guaranteed.Get(kind); named {
				has := q.CommittedKept().Sub(own).Get(kind)
				if s.store.model.Preemption.StrictGuarantee {
					has += request.Get(kind) - 1
				}
				below[kind], reached[kind] = below[kind] || has < g, reached[kind] || has >= g
			}
		}
	}
	for kind := range below {
		if below[kind] && !reached[kind] {
			return true
		}
	}
	return false
}
