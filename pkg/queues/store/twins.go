package store

import (
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// twins are the pods of one application that no filter can tell apart: what one
// of them was told holds for all. They keep a full cluster from asking the same
// question ten thousand times whenever a pod goes:
//
//   - Every pod is tried once, whatever its twins were told. Only then is it told
//     by the scheduler's own condition that no node takes it, which is what
//     cluster autoscalers go by. From then on it counts as one of its twins.
//   - Once one of them finds no node, the others leave the order.
//   - The scheduler has the one that failed and watches what happens on its
//     behalf. When it brings it back, something has happened that may help any
//     of them: they take part in the order again.
type twins struct {
	app     *app
	request resources.Vector
	kind    string
	members int
	parked  int  // of the members
	failed  bool // one found no node and nothing has happened since: out of the order

	// What the last plan for one of them came to, and when the next is worth making.
	triedAt, retryAt time.Time
	refused          reasons.Reason
	sweep            sweep
}

// twinsKey tells the twins of one application apart.
type twinsKey struct{ request, kind string }

func (t *twins) key() twinsKey { return twinsKey{t.request.Key(), t.kind} }

// name is the kind of the twins; "" for none.
func (t *twins) name() string {
	if t == nil {
		return ""
	}
	return t.kind
}

// probing bounds how many pods that found no node before are let through at a
// time: one, and twice as many with each one that is placed. Room for them is
// scarce, and whose turn it is can change with every answer: if the first one
// finds no node, its twins need not be tried, and it is another queue's turn. A
// window full of them would be tried in vain, or take room out of turn.
type probing struct {
	limit, taken int
	// hopes counts how often twins that had failed took part in the order again.
	hopes uint64
}

// full tells whether the pod, which is first in the order, has to wait for what
// becomes of others like it. So have all behind it.
func (b *probing) full(p *pod) bool { return p.twins != nil && b.taken >= b.limit }

// heldByTwin tells whether a pod waits for something to happen to its twins.
func (p *pod) heldByTwin() bool { return p.state == waiting && p.twins != nil && p.twins.failed }

// enter gives a pod another state. Nothing else does, so that its twins know.
func (s *Store) enter(p *pod, to state) { s.enterAs(p, to, false) }

// enterAs does so; kept is for a pod that is parked because of its mates only.
func (s *Store) enterAs(p *pod, to state, kept bool) {
	from := p.state
	s.recountMate(p.mates, p, func() { p.state, p.kept = to, kept })
	if to == parked || to == cooling {
		p.outgrown = nil // its cycle is over
	}
	s.changed(p)
	s.tally(p)
	if t := p.twins; t != nil {
		s.recount(t, from, -1)
		s.recount(t, to, 1)
	}
}

// recount follows one of the twins into a state or out of it. One that is not
// parked any more gives hope to all.
func (s *Store) recount(t *twins, st state, n int) {
	switch st {
	case admitted:
		s.probing.taken += n
	case parked:
		t.parked += n
		if n < 0 && t.failed {
			s.probing.hopes++
			s.setFailed(t, false)
		}
	}
}

func (s *Store) setFailed(t *twins, failed bool) {
	t.failed = failed
	s.index.SetClosed(t.app.ordered, t.request, t.kind, failed)
}

// joinTwins makes a pod one of its twins.
func (s *Store) joinTwins(p *pod, kind string) {
	if p.twins.name() == kind {
		return
	}
	s.leaveTwins(p)
	if kind == "" {
		return
	}
	t := &twins{app: p.app, request: p.Request, kind: kind}
	if known := p.app.twins[t.key()]; known != nil {
		t = known
	} else if p.app.twins == nil {
		p.app.twins = map[twinsKey]*twins{}
	}
	p.app.twins[t.key()] = t
	p.twins = t
	t.members++
	s.recount(t, p.state, 1)
}

// leaveTwins takes a pod away from its twins: it is gone, or has a node, or
// became another one.
func (s *Store) leaveTwins(p *pod) {
	t := p.twins
	if t == nil {
		return
	}
	p.twins = nil
	t.members--
	s.recount(t, p.state, -1)
	if t.members == 0 {
		delete(t.app.twins, t.key())
	}
}

// twinFailed notes that a pod, parked by now, found no node.
func (s *Store) twinFailed(p *pod) {
	if p.twins != nil {
		s.probing.limit = 1
		s.setFailed(p.twins, true)
	}
}

// twinPlaced notes that a pod found a node.
func (s *Store) twinPlaced(p *pod) {
	if p.twins != nil {
		s.probing.limit = min(2*s.probing.limit, s.options.MaxWindow)
	}
}

// overtaken tells whether an admitted pod, which found a node, has to leave it to
// others: room is scarce for pods of its application, and others that found none
// took part in the order again after it was admitted, and are before it. The room
// is most likely what brought them back. The pod then waits, in the order.
func (s *Store) overtaken(p *pod, now time.Time) bool {
	if p.state != admitted || p.asks.holds || p.hopes == s.probing.hopes || len(p.app.twins) == 0 || p.twins != nil && p.twins.failed {
		return false
	}
	return s.backInOrder(p, now)
}

// checkTwins verifies that twins know their members, that one of those that
// failed is with the scheduler, which can bring it back, and the bound of probing.
func (s *Store) checkTwins() []error {
	type count struct{ members, parked int }
	counts := map[*twins]count{}
	taken := 0
	for _, p := range s.pods {
		if p.twins == nil {
			continue
		}
		c := counts[p.twins]
		c.members++
		switch p.state {
		case parked:
			c.parked++
		case admitted:
			taken++
		}
		counts[p.twins] = c
	}
	var errs []error
	if taken != s.probing.taken {
		errs = append(errs, fmt.Errorf("probing: %d pods counted, there are %d", s.probing.taken, taken))
	}
	for t, c := range counts {
		switch {
		case c != count{t.members, t.parked} || t.app.twins[t.key()] != t:
			errs = append(errs, fmt.Errorf("twins of %s: %d counted, %d of them parked; there are %+v", t.app.name, t.members, t.parked, c))
		case t.failed && t.parked == 0:
			errs = append(errs, fmt.Errorf("twins of %s: out of the order, and the scheduler has none of them", t.app.name))
		}
	}
	return errs
}
