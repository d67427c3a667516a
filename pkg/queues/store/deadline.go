package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

func (s *Store) setDeadline(p *pod, at time.Time) {
	p.deadline = at
	s.deadlines.Update(p, true)
}

func (s *Store) clearDeadline(p *pod) { s.deadlines.Update(p, false) }

// nextMoved tells whether the next deadline is earlier than the one last told.
func (s *Store) nextMoved() bool {
	next, ok := s.next()
	if !ok || (!s.told.IsZero() && !next.Before(s.told)) {
		return false
	}
	s.told = next
	return true
}

func (s *Store) next() (time.Time, bool) {
	next, _ := s.nextChore()
	if due := s.askingDue(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
		next = due
	}
	if due := s.stirredDue(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
		next = due
	}
	if due := s.lostDue(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
		next = due
	}
	return next, !next.IsZero()
}

// nextChore is the next deadline but for plans, which are made again and again
// for pods that stay stuck.
func (s *Store) nextChore() (time.Time, bool) {
	var next time.Time
	if p, ok := s.deadlines.First(); ok {
		next = p.deadline
	}
	if due := s.holdsDue(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
		next = due
	}
	if due := s.placingDue(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
		next = due
	}
	if due := s.capacity.due; !due.IsZero() && (next.IsZero() || due.Before(next)) {
		next = due
	}
	if len(s.emptied) > 0 && (next.IsZero() || s.sweepAt.Before(next)) {
		next = s.sweepAt
	}
	return next, !next.IsZero()
}

// NextDeadline returns when Tick has something to do, and false when it has not.
func (s *Store) NextDeadline() (time.Time, bool) {
	s.lock()
	defer s.mu.Unlock()
	next, ok := s.next()
	s.told = next
	return next, ok
}

// Tick does what is due by now: pods whose back-off ended come back into the
// order, slots whose lease ended are taken back, queues that stayed empty go.
func (s *Store) Tick(now time.Time) {
	s.lock()
	defer s.unlock(now)
	s.told = time.Time{}
	s.tickCapacity(now)
	for {
		p, ok := s.deadlines.First()
		if !ok || p.deadline.After(now) {
			break
		}
		s.clearDeadline(p)
		switch p.state {
		case cooling:
			s.leaveLane(p)
			if p.asks.holds || p.Foreign {
				s.letThrough(p, now)
				continue
			}
			s.toWaiting(p)
		case admitted:
			if s.standby {
				s.setDeadline(p, now.Add(s.lease(p)))
				continue
			}
			s.expire(p, now)
		}
	}
	s.settleLost(now)
	s.tickAsking(now)
	s.timeOutHolds(now)
	s.sweep(now)
}

// SetStandby tells whether another process does the scheduling. Slots do not
// expire then: nobody here takes the pods that were let through. When this one
// leads again, also if nobody led meanwhile, what there is to write of holds is
// there to be taken anew.
func (s *Store) SetStandby(standby bool, now time.Time) {
	s.lock()
	defer s.unlock(now)
	switch {
	case standby:
		s.standby = true
		return
	case !s.started:
		s.standby = false
		return
	case s.standby:
		s.lead(now)
	}
	s.resume()
}

// lease is how long an admitted pod keeps its slot without a sign of life. Others
// wait for a pod that failed before, so that one is not waited for as long.
func (s *Store) lease(p *pod) time.Duration {
	if p.twins != nil {
		return s.options.SlotLease / 10
	}
	return s.options.SlotLease
}

// expire ends the lease of a slot: nobody told what became of the pod. It is
// treated as failed, so that others have a chance, and comes back by itself.
func (s *Store) expire(p *pod, now time.Time) {
	s.vacate(p)
	s.toParked(p, reasons.New(reasons.BackingOff, "the pod was let through and not heard of for %v", s.lease(p)), now)
	s.cool(p, now.Add(s.options.MaxBackoff))
}

// cool lets a parked pod come back at a time.
func (s *Store) cool(p *pod, until time.Time) {
	s.enter(p, cooling)
	s.setDeadline(p, until)
}

// holdsDue is when the first hold times out; zero for never. A standby leaves
// that to who leads.
func (s *Store) holdsDue() time.Time {
	if s.standby {
		return time.Time{}
	}
	if s.dueAnew {
		s.dueAnew = false
		s.due, _ = s.holds.NextDue(s.preemption.HoldTimeout, s.isPlaced)
	}
	return s.due
}

// isPlaced tells whether an asker is on its node by now, though its bind was not
// seen: its hold does not time out.
func (s *Store) isPlaced(asker types.UID) bool {
	p := s.pods[asker]
	return p != nil && p.state.allocated()
}

// timeOutHolds ends the holds that nobody made use of.
func (s *Store) timeOutHolds(now time.Time) {
	if due := s.holdsDue(); due.IsZero() || due.After(now) {
		return
	}
	for _, h := range s.holds.Overdue(now, s.preemption.HoldTimeout, s.isPlaced) {
		if p := s.pods[h.Asker]; p != nil {
			s.endHold(p, reservations.TimedOut, reasons.New(reasons.HoldTimedOut,
				"node %s was clear for %v and the pod did not start there", h.Node, s.preemption.HoldTimeout), now)
			s.timeOutMates(p, now)
		}
	}
	s.dueAnew = true
}

// timeOutMates ends the holds of the others of a PodGroup that did not start in time,
// except of those that wait for victims. As long as one of them held a node, the others
// would be given it again as soon as their time was over, for they fit beside it: the
// group would keep the node from all others, and not start. For the same reason the loss is
// one of the whole group: two groups that each keep from the other the place that it lacks
// would have theirs again at once, and neither would ever start.
//
// A pod that is at Permit keeps its hold as long as it is there, and not those of the
// others: members that come to Permit by turns would keep a node for ever.
func (s *Store) timeOutMates(p *pod, now time.Time) {
	if !p.apart() {
		return
	}
	why := reasons.New(reasons.HoldTimedOut, "PodGroup %s did not start while a node was clear for %v for one of its pods", p.mates.name, s.preemption.HoldTimeout)
	for _, m := range p.mates.sorted(func(m *pod) bool { return !m.state.allocated() && m.RequiredNode == "" }) {
		if h, ok := s.holds.Of(m.UID); ok && h.Clear() {
			s.endHold(m, reservations.TimedOut, why, now)
		}
	}
}

// planAnew has plans made for the members of a PodGroup whatever became of those before:
// it started, or starts with another number.
func (s *Store) planAnew(g *podGroup) {
	if g.losses.count == 0 {
		return
	}
	g.losses = losses{}
	for _, m := range g.sorted(func(m *pod) bool { return m.state == parked || m.state == cooling }) {
		m.asks.retryAt = time.Time{}
		s.arm(m, time.Time{})
	}
}
