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
// node, for two reasons: pods that criterion 2 puts before it may have come since its
// admission, and backing-off pods are not in the order. If such a pod fits the node, but
// not beside the pod that found it, the pod goes back to the order and the others go
// first.
//
//	admitted, found a node ──── none is ahead ────► assumed
//	   │
//	   └── ahead fits the node ─► waiting; a backing-off pod ahead goes to waiting, too
//
// Amounts decide here. If the filters refuse a pod that is ahead, it is tried only once,
// because it no longer backs off, and the pod that waited gets the room after that. Pods
// that hold a node, pods that can run on one node only, and members of PodGroups do not
// wait here.

// ahead returns the pods that go before an admitted pod that is about to run on a node.
func (s *Store) ahead(p *pod, node string) []*pod {
	n := s.cache.Nodes.Get(node)
	if n == nil || p.asks.Holds() || p.RequiredNode != "" || p.apart() {
		return nil
	}
	room := n.Room()
	rest := room.Sub(p.Request)
	sides := s.pending.Order.Sides(p.app.Leaf, p.Request, p.Charged(cache.Admitted))
	var out []*pod
	wants := func(w *pod) bool { return !w.apart() && cache.Fits(w.Pod, room) && !cache.Fits(w.Pod, rest) }
	inOrder := func(g *order.Group) bool {
		if w := s.pods[types.UID(g.First().UID())]; wants(w) {
			out = append(out, w)
		}
		return true
	}
	s.pending.Order.Ahead(p.app.Leaf, p.Priority, sides, inOrder)
	s.pending.Lane.Ahead(p.app.Leaf, p.Priority, sides, inOrder)
	var up wayUp
	for w := range s.pending.Window.Pods() {
		if w == p || w.asks.Holds() || w.RequiredNode != "" || !wants(w) {
			continue
		}
		if up == nil {
			up = wayUpOf(s.cache.Tree(), p)
		}
		if s.isAhead(w, up, sides) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// wayUp is the queues above a pod, leaf first, each with the priority that the pod shows
// to its parent.
type wayUp []struct {
	queue   queues.ID
	exposed int64
}

func wayUpOf(tree *queues.Draft, p *pod) wayUp {
	up, at := make(wayUp, 0, 8), int64(p.Priority)
	for q := range tree.Ancestors(p.app.Leaf) {
		at = queues.Exposed(at, q.Policies)
		up = append(up, struct {
			queue   queues.ID
			exposed int64
		}{q.ID, at})
	}
	return up
}

// level returns how many levels above the leaf a queue is; -1 if it is not on the way.
func (up wayUp) level(q queues.ID) int {
	for i := range up {
		if up[i].queue == q {
			return i
		}
	}
	return -1
}

// isAhead tells whether criterion 2 puts the admitted pod w before another one, which has
// the given way up and sides.
func (s *Store) isAhead(w *pod, up wayUp, sides order.Sides) bool {
	at, level := int64(w.Priority), 0
	for q := range s.cache.Tree().Ancestors(w.app.Leaf) {
		if up.level(q.ID) >= 0 {
			return false // one queue contains the other
		}
		at = queues.Exposed(at, q.Policies)
		if above := up.level(q.Parent); above > 0 {
			first := !s.cache.Tree().Queue(q.Parent).Policies.PrioritySort || at >= up[above-1].exposed
			return first && !sides.Has(above-1) && s.pending.Order.Sides(w.app.Leaf, w.Request, w.Charged(cache.Admitted)).Has(level)
		}
		level++
	}
	return false
}

// letAhead puts a pod that found a node back into the order if others go before it, and
// tells whether it did. A pod that an event took out of its slot during its cycle has no
// right to the room either.
//
// A pod with a slot that the scheduler's queue would try before p is not waited for. As p
// is in its cycle, that queue does not have the other pod: it has not seen it yet, or an
// earlier cycle ended with an error. Otherwise p would be tried again and again until the
// slot of the other pod ends.
func (s *Store) letAhead(p *pod, node string, now time.Time) bool {
	ahead := s.ahead(p, node)
	if len(ahead) == 0 {
		return false
	}
	rank, inFlight := queues.Rank(s.cache.Tree(), p.app.Leaf, p.Priority), false
	for _, w := range ahead {
		switch {
		case w.state == state.BackingOff:
			s.leaveCooling(w)
			s.toWaiting(w)
		case w.state.HasSlot() && s.pending.Keys.Before(p.UID, w.UID):
			key, _ := s.pending.Keys.Get(w.UID)
			rank, inFlight = min(rank, key.Rank), true
		}
	}
	if !p.state.HasSlot() {
		s.withdraw(p)
		s.pending.Keys.Remove(p.UID)
		s.toWaiting(p)
		return true
	}
	if !s.backInOrder(p, now) && !(inFlight && s.putBack(p)) {
		return false
	}
	if inFlight { // the scheduler's queue is to try them before p
		s.pending.Keys.Add(p.UID, rank, now.UnixNano())
	}
	return true
}

// putBack puts an admitted pod back into the order.
func (s *Store) putBack(p *pod) bool {
	s.vacate(p)
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
