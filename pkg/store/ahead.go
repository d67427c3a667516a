package store

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Room goes to the pod that could preempt for it. The order ensures that when a pod is
// admitted (order.CompareQueues, criterion 2). It is checked again when a pod has found a
// node, because others that go before it may have come since, and pods that found no node
// are not in the order. If such pods fit the node, and not all of them beside the pod that
// found it, that pod goes back to the order and they go first.
//
//	admitted, found a node ──── none is ahead ────► assumed
//	   │
//	   └── ahead fit the node ─► waiting; those that found no node before go to waiting, too
//
// Amounts decide here. If the filters refuse a pod that is ahead, it is tried only once: it
// found no node then, and the node has got no more room since. Pods that hold a node, pods
// that can run on one node only, and members of PodGroups do not wait here.
//
// The scheduler gets events by listeners of its own. So a pod may find room that is not free
// yet by the events that the store has seen. Then the store does not know either which
// queues are below their guarantees, and the pod goes back to the order until it does, for
// a few times at most.

// mostBehind is how often a pod goes back because the store has not seen an event yet.
const mostBehind = 5

// ahead returns the pods that go before an admitted pod that is about to run on a node.
func (s *Store) ahead(p *pod, n *cache.Node) []*pod {
	room := n.Room().Max(p.Request) // the filters found that it fits
	rest := room.Sub(p.Request)
	own := p.outside()
	sides := s.pending.Order.Sides(&own)
	var out []*pod
	add := func(w *pod) {
		if w != p && !w.asks.Holds() && w.RequiredNode == "" && !w.apart() && cache.Fits(w.Pod, room) {
			out, rest = append(out, w), rest.Sub(w.Request)
		}
	}
	s.pending.Ahead(&own, sides, room, func(ask *order.Ask) bool {
		w := s.pods[types.UID(ask.UID())]
		if w.state != state.Unschedulable || n.RoomierSince(w.equivalenceClass.Saw(w.sees)) {
			add(w)
		}
		return !rest.HasNegative()
	})
	for w := range s.pending.Window.Pods() {
		if other := w.outside(); room.Covers(w.Request) && s.pending.Order.IsAhead(&other, &own, sides) {
			add(w)
		}
	}
	if !rest.HasNegative() {
		return nil // all have room
	}
	slices.SortFunc(out, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// outside is a pod as the order knows those that are not in it.
func (p *pod) outside() order.Outside {
	return order.Outside{Leaf: p.app.Leaf, Priority: p.Priority, Request: p.Request, Own: p.Charged(cache.Admitted)}
}

// letAhead puts a pod that found a node back into the order if others go before it, or may
// by events that are not seen yet, and tells whether it did. A pod that an event took out of
// its slot during its cycle has no right to the room either.
//
// A pod with a slot that the scheduler's queue would try before p is not waited for. As p
// is in its cycle, that queue does not have the other pod: it has not seen it yet, or an
// earlier cycle ended with an error. Otherwise p would be tried again and again until the
// slot of the other pod ends.
func (s *Store) letAhead(p *pod, node string, now time.Time) bool {
	n := s.cache.Nodes.Get(node)
	if n == nil || p.asks.Holds() || p.RequiredNode != "" || p.apart() {
		return false
	}
	if p.gaveWay < mostBehind && n.Known() && !n.Room().Covers(p.Request) && s.pending.Demand.Any() {
		p.gaveWay++
		return s.putBack(p)
	}
	ahead := s.ahead(p, n)
	if len(ahead) == 0 {
		return false
	}
	rank, inFlight := queues.Rank(s.cache.Tree(), p.app.Leaf, p.Priority), false
	for _, w := range ahead {
		switch {
		case w.state == state.BackingOff, w.state == state.Unschedulable:
			s.putBack(w)
		case w.state.HasSlot() && s.pending.Keys.Before(p.UID, w.UID):
			key, _ := s.pending.Keys.Get(w.UID)
			rank, inFlight = min(rank, key.Rank), true
		}
	}
	if !p.state.HasSlot() {
		return s.putBack(p)
	}
	if !s.backInOrder(p, now) && !(inFlight && s.putBack(p)) {
		return false
	}
	if inFlight { // the scheduler's queue is to try them before p
		s.pending.Keys.Add(p.UID, rank, now.UnixNano())
	}
	return true
}

// putBack puts a pod without a node back into the order.
func (s *Store) putBack(p *pod) bool {
	s.withdraw(p)
	s.pending.Keys.Remove(p.UID)
	s.toWaiting(p)
	return true
}

// backInOrder puts an admitted pod back into the order if another pod that may run is
// then first. Otherwise the pod stays admitted.
func (s *Store) backInOrder(p *pod, now time.Time) bool {
	s.putBack(p)
	s.unblock()
	for ask, ok := s.pending.Order.Next(); ok && ask != p.ask; ask, ok = s.pending.Order.Next() {
		first := s.pods[types.UID(ask.UID())]
		v := s.cache.Books.CheckQuota(&first.app.cacheApp, first.Request, queues.OnCommitted)
		if v.OK() {
			return true
		}
		s.pending.Order.Block(ask.Group(), v)
	}
	s.toAdmitted(p, now)
	return false
}

// passedOver tells whether an admitted pod that found a node must leave it to others. That
// is so if room is scarce for its application, and pods that found no node returned to
// the order after this pod was admitted and are before it. The room is most likely what
// brought them back. The pod then waits in the order.
func (s *Store) passedOver(p *pod, now time.Time) bool {
	if !p.state.HasSlot() || p.asks.Holds() || p.hopes == s.pending.Classes.Limit.Reopened() || !s.pending.Classes.Any(p.app.ordered) || p.equivalenceClass.Failed() {
		return false
	}
	return s.backInOrder(p, now)
}
