package store

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
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
	n := s.nodes[node]
	if n == nil || p.state != admitted || p.asks.holds || p.RequiredNode != "" || p.apart() {
		return nil
	}
	room := n.room()
	rest := room.Sub(p.Request)
	sides := s.index.Sides(p.app.leaf, p.Request, p.slot)
	var out []*pod
	wants := func(w *pod) bool { return !w.apart() && cache.Fits(w.Pod, room) && !cache.Fits(w.Pod, rest) }
	inOrder := func(g *order.Group) bool {
		if w := s.pods[types.UID(g.First().UID())]; wants(w) {
			out = append(out, w)
		}
		return true
	}
	s.index.Ahead(p.app.leaf, p.Priority, sides, inOrder)
	s.lane.index.Ahead(p.app.leaf, p.Priority, sides, inOrder)
	for w := range s.window.Pods() {
		if w != p && !w.asks.holds && w.RequiredNode == "" && wants(w) && s.isAhead(w, p, sides) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// isAhead tells whether criterion 2 puts the admitted pod w before p, which has the given
// sides.
func (s *Store) isAhead(w, p *pod, sides order.Sides) bool {
	path, exposed := map[queues.ID]int{}, []int64{}
	at := int64(p.Priority)
	for q := range s.draft.Ancestors(p.app.leaf) {
		path[q.ID] = len(path)
		at = queues.Exposed(at, q.Policies)
		exposed = append(exposed, at)
	}
	at, level := int64(w.Priority), 0
	for q := range s.draft.Ancestors(w.app.leaf) {
		if _, same := path[q.ID]; same {
			return false // one queue contains the other
		}
		at = queues.Exposed(at, q.Policies)
		if above, common := path[q.Parent]; common && above > 0 {
			first := !s.draft.Queue(q.Parent).Policies.PrioritySort || at >= exposed[above-1]
			return first && !sides.Has(above-1) && s.index.Sides(w.app.leaf, w.Request, w.slot).Has(level)
		}
		level++
	}
	return false
}

// letAhead puts an admitted pod that found a node back into the order if others go before
// it, and tells whether it did.
func (s *Store) letAhead(p *pod, node string, now time.Time) bool {
	ahead := s.ahead(p, node)
	if len(ahead) == 0 {
		return false
	}
	rank, inFlight := queues.Rank(s.draft, p.app.leaf, p.Priority), false
	for _, w := range ahead {
		switch w.state {
		case cooling:
			s.leaveCooling(w)
			s.toWaiting(w)
		case admitted: // tried before p, if the scheduler's queue sorts it first
			key, _ := s.keys.Get(w.UID)
			inFlight = inFlight || key.Rank >= rank
		}
	}
	return s.backInOrder(p, now) || inFlight && s.putBack(p)
}

// putBack puts an admitted pod back into the order.
func (s *Store) putBack(p *pod) bool {
	s.vacate(p)
	s.toWaiting(p)
	return true
}

// backInOrder puts an admitted pod back into the order if another pod that may run is
// then first. Otherwise the pod stays admitted.
func (s *Store) backInOrder(p *pod, now time.Time) bool {
	s.putBack(p)
	s.unblock()
	for ask, ok := s.index.Next(); ok && ask != p.ask; ask, ok = s.index.Next() {
		first := s.pods[types.UID(ask.UID())]
		v := s.judge(first.app, first.Request, queues.OnCommitted)
		if v.OK() {
			return true
		}
		s.index.Block(ask.Group(), v)
	}
	s.toAdmitted(p, now)
	return false
}
