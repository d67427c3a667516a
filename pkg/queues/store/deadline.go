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
	next = earliest(next, s.askingDue(), s.stirredDue(), s.lostDue())
	return next, !next.IsZero()
}

// earliest returns the first of some times; zero means never.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// nextChore is the next deadline, without those of plans, which are made again and again
// for pods that stay stuck.
func (s *Store) nextChore() (time.Time, bool) {
	next := earliest(s.holdsDue(), s.placingDue(), s.capacity.due, s.nodeBound.due())
	if p, ok := s.deadlines.First(); ok {
		next = earliest(next, p.deadline)
	}
	if len(s.emptied) > 0 {
		next = earliest(next, s.sweepAt)
	}
	return next, !next.IsZero()
}

// NextDeadline returns when Tick has something to do, and false when it has not.
func (s *Store) NextDeadline() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, ok := s.next()
	s.told = next
	return next, ok
}

// Tick does what is due by now: pods whose back-off ended come back into the
// order, slots whose lease ended are taken back, queues that stayed empty go.
func (s *Store) Tick(now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.told = time.Time{}
	s.tickCapacity(now)
	s.vacated = append(s.vacated, s.nodeBound.expire(now)...)
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
	s.mu.Lock()
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
		s.due, _ = s.holds.NextDue(s.preemption.HoldTimeout, s.dueFrom())
	}
	return s.due
}

// isPlaced tells whether an asker is on its node by now, though its bind was not
// seen: its hold does not time out.
func (s *Store) isPlaced(asker types.UID) bool {
	p := s.pods[asker]
	return p != nil && p.state.allocated()
}

// dueFrom says from when the time-outs of holds count. The holds of a PodGroup that has not
// started have one time-out for all: it counts from that of the last of them. Else
// the first member would lose its node while room is made for the last one; and as long as
// one of them holds a node, another one whose hold ended would be given that node again, for
// it fits beside it, and the group would keep the node from all others without a start. For
// the same reason the loss is one of the whole group.
//
// A pod that is at Permit keeps its hold as long as it is there, but the others do not have
// theirs for it: members that come to Permit by turns would keep a node for ever.
func (s *Store) dueFrom() reservations.From {
	known := map[*podGroup]time.Time{} // zero: it has time
	return func(asker types.UID, own time.Time) (time.Time, bool) {
		p := s.pods[asker]
		switch {
		case p == nil:
			return own, true
		case p.state.allocated():
			return time.Time{}, false
		case p.RequiredNode != "":
			if h, _ := s.holds.Of(asker); len(h.Chosen) == 0 {
				own = latest(own, h.Since.Add(s.preemption.Required.StartDelay)) // before that none may be chosen
			}
			return own, true
		case !p.apart():
			return own, true
		}
		from, ok := known[p.mates]
		if !ok {
			from = s.lastFrom(p.mates)
			known[p.mates] = from
		}
		return from, !from.IsZero()
	}
}

// lastFrom is the last from when the time-out of a hold of a group counts.
func (s *Store) lastFrom(g *podGroup) time.Time {
	var last time.Time
	for _, m := range g.members {
		if from, holds := s.holds.TimeFrom(m.UID); holds && m.RequiredNode == "" {
			last = latest(last, from)
		}
	}
	return last
}

// timeOutHolds ends the holds that no pod made use of.
func (s *Store) timeOutHolds(now time.Time) {
	if due := s.holdsDue(); due.IsZero() || due.After(now) {
		return
	}
	for _, h := range s.holds.Overdue(now, s.preemption.HoldTimeout, s.dueFrom()) {
		if p := s.pods[h.Asker]; p != nil {
			s.endHold(p, reservations.TimedOut, s.timedOut(p, &h), now)
		}
	}
	s.dueAnew = true
}

// timedOut says what became of a hold that its pod did not make use of.
func (s *Store) timedOut(p *pod, h *reservations.Hold) reasons.Reason {
	if p.apart() && h.Clear() {
		return reasons.New(reasons.HoldTimedOut, "PodGroup %s did not start within %v of when the last node that its pods hold was clear", p.mates.name, s.preemption.HoldTimeout)
	}
	switch {
	case !h.Clear() && len(h.Chosen) > 0:
		return reasons.New(reasons.HoldTimedOut, "pods that were to leave node %s are there %v after they were told: %d", h.Node, s.preemption.HoldTimeout, len(h.Victims))
	case len(h.Chosen) == 0 && (h.Patient || !h.Clear()):
		return reasons.New(reasons.HoldTimedOut, "node %s was held for %v and no pod was chosen to make room there", h.Node, s.preemption.HoldTimeout)
	}
	return reasons.New(reasons.HoldTimedOut, "node %s was clear for %v and the pod did not start there", h.Node, s.preemption.HoldTimeout)
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
