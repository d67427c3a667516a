package store

import (
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// equivalenceClass is an equivalence class: the pods of one application that no filter can tell
// apart, so a result for one of them holds for all. Without it, each pod that ends would
// make a full cluster try ten thousand equal pods:
//
//   - Every pod is tried once, whatever the results of its class. Only a failed cycle of
//     its own sets the scheduler's condition that no node takes it, which cluster
//     autoscalers read. From then on it is a member of its class.
//   - Once one member finds no node, the others leave the order.
//   - The scheduler's queue has the member that failed and watches events for it. When it
//     brings that member back, an event has happened that may help all members, and they
//     are in the order again.
type equivalenceClass struct {
	app     *app
	request resources.Vector
	kind    string
	members int
	stuck   int  // members in state Unschedulable
	failed  bool // a member found no node, with no event since: out of the order

	// The time and result of the last plan for a member, and the earliest time of the
	// next.
	triedAt, retryAt time.Time
	refused          reasons.Reason
	sweep            preemption.Sweep
}

// classKey identifies an equivalence class within its application.
type classKey struct{ request, kind string }

func (t *equivalenceClass) key() classKey { return classKey{t.request.Key(), t.kind} }

// name is the kind of the class; "" for none.
func (t *equivalenceClass) name() string {
	if t == nil {
		return ""
	}
	return t.kind
}

// heldByClass tells whether a pod waits because its equivalence class failed.
func (p *pod) heldByClass() bool {
	return p.state == state.Queued && p.equivalenceClass != nil && p.equivalenceClass.failed
}

// enter sets the state of a pod. Every state change goes through it or setState, so that
// counts stay right.
func (s *Store) enter(p *pod, to state.State) {
	if to.WaitsForNode() || to == state.GroupBlocked {
		p.assumedRequest = nil // its cycle is over
	}
	s.history.changed(p)
	s.setState(p, to)
}

// setState is enter for a change that readers do not see.
func (s *Store) setState(p *pod, to state.State) {
	from := p.state
	s.pending.Transitions.Note(from, to)
	p.state = to
	s.updateMate(p, p.asks.Holds())
	s.history.tally(p)
	if t := p.equivalenceClass; t != nil {
		s.recount(t, from, -1)
		s.recount(t, to, 1)
	}
}

// recount updates the counts of a class when a member enters (n = 1) or leaves (n = -1) a
// state. A member that leaves parked returns a failed class to the order.
func (s *Store) recount(t *equivalenceClass, st state.State, n int) {
	switch st {
	case state.Admitted, state.Scheduling:
		s.pending.ClassLimit.Admitted(n)
	case state.Unschedulable:
		t.stuck += n
		if n < 0 && t.failed {
			s.pending.ClassLimit.NoteReopened()
			s.setFailed(t, false)
		}
	}
}

func (s *Store) setFailed(t *equivalenceClass, failed bool) {
	t.failed = failed
	s.pending.Order.SetClosed(t.app.ordered, t.request, t.kind, failed)
}

// joinClass makes a pod a member of its equivalence class.
func (s *Store) joinClass(p *pod, kind string) {
	if p.equivalenceClass.name() == kind {
		return
	}
	s.leaveClass(p)
	if kind == "" {
		return
	}
	t := &equivalenceClass{app: p.app, request: p.Request, kind: kind}
	if known := p.app.equivalenceClass[t.key()]; known != nil {
		t = known
	} else if p.app.equivalenceClass == nil {
		p.app.equivalenceClass = map[classKey]*equivalenceClass{}
	}
	p.app.equivalenceClass[t.key()] = t
	p.equivalenceClass = t
	t.members++
	s.recount(t, p.state, 1)
}

// leaveClass takes a pod out of its class: it is gone, has a node, or changed.
func (s *Store) leaveClass(p *pod) {
	t := p.equivalenceClass
	if t == nil {
		return
	}
	p.equivalenceClass = nil
	t.members--
	s.recount(t, p.state, -1)
	if t.members == 0 {
		delete(t.app.equivalenceClass, t.key())
	}
}

// classFailed notes that a pod, already parked, found no node.
func (s *Store) classFailed(p *pod) {
	if p.equivalenceClass != nil {
		s.pending.ClassLimit.Failed()
		s.setFailed(p.equivalenceClass, true)
	}
}

// classPlaced notes that a pod found a node.
func (s *Store) classPlaced(p *pod) {
	if p.equivalenceClass != nil {
		s.pending.ClassLimit.Placed()
	}
}

// passedOver tells whether an admitted pod that found a node must leave it to others. That
// is so if room is scarce for its application, and pods that found no node returned to
// the order after this pod was admitted and are before it. The room is most likely what
// brought them back. The pod then waits in the order.
func (s *Store) passedOver(p *pod, now time.Time) bool {
	if !p.state.HasSlot() || p.asks.Holds() || p.hopes == s.pending.ClassLimit.Reopened() || len(p.app.equivalenceClass) == 0 || p.equivalenceClass != nil && p.equivalenceClass.failed {
		return false
	}
	return s.backInOrder(p, now)
}

// checkClasses verifies the member counts of classes, the bound of probing, and that the
// scheduler has a member of every failed class and so can bring it back.
func (s *Store) checkClasses() []error {
	type count struct{ members, stuck int }
	counts := map[*equivalenceClass]count{}
	taken := 0
	for _, p := range s.pods {
		if p.equivalenceClass == nil {
			continue
		}
		c := counts[p.equivalenceClass]
		c.members++
		switch p.state {
		case state.Unschedulable:
			c.stuck++
		case state.Admitted, state.Scheduling:
			taken++
		}
		counts[p.equivalenceClass] = c
	}
	var errs []error
	errs = append(errs, s.pending.ClassLimit.Check(taken))
	for t, c := range counts {
		switch {
		case c != count{t.members, t.stuck} || t.app.equivalenceClass[t.key()] != t:
			errs = append(errs, fmt.Errorf("twins of %s: %d counted, %d of them unschedulable; there are %+v", t.app.Name, t.members, t.stuck, c))
		case t.failed && t.stuck == 0:
			errs = append(errs, fmt.Errorf("twins of %s: out of the order, and the scheduler has none of them", t.app.Name))
		}
	}
	return errs
}
