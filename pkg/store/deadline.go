package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// next is the next deadline; zero for none.
func (s *Store) next() time.Time {
	return earliest(s.nextChore(), s.asking.Due(&s.preemption.Limiter), s.preemption.Watches.Due(), s.pending.Lost.Due())
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

// nextChore is the next deadline, without those of plans, which recur for pods that stay
// stuck.
func (s *Store) nextChore() time.Time {
	return earliest(s.holdsDue(), s.pending.Groups.Due(), s.cache.Capacity.Due(), s.cache.Empty.Due(), s.preemption.NodeBound.Due(), s.pending.Timers.Next())
}

// NextDeadline returns when Tick next has work, and false if it has none.
func (s *Store) NextDeadline() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.told = s.next()
	return s.out.told, !s.out.told.IsZero()
}

// Tick does what is due: pods return to the order when their back-off ends, slots are
// taken back when their lease expires, queues that stayed empty are removed.
func (s *Store) Tick(now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.out.told = time.Time{}
	if s.cache.Capacity.Tick(now) {
		s.tellCapacity()
	}
	s.out.vacated = append(s.out.vacated, s.preemption.NodeBound.Expire(now)...)
	for p, ok := s.pending.Timers.Due(now); ok; p, ok = s.pending.Timers.Due(now) {
		switch p.state {
		case state.BackingOff:
			s.leaveLane(p)
			if p.asks.Holds() || p.Foreign {
				s.letThrough(p, now)
				continue
			}
			s.toWaiting(p)
		case state.Admitted, state.Scheduling:
			if s.standby {
				s.pending.Timers.Set(&p.timer, now.Add(s.options.lease(p)))
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

// SetStandby sets whether another process does the scheduling. Slots do not expire on a
// standby, because it does not schedule the admitted pods. When this process leads again,
// even without another leader in between, all unfinished writes of holds are queued
// again.
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

// lease is how long an admitted pod keeps its slot without progress. It is shorter for a
// pod that failed before, because others wait for its result.
func (o *Options) lease(p *pod) time.Duration {
	if p.equivalenceClass != nil {
		return o.SlotLease / 10
	}
	return o.SlotLease
}

// expire ends the lease of a slot without a result of the pod's cycle. The pod is treated
// as failed, so that others can go on, and comes back after its back-off.
func (s *Store) expire(p *pod, now time.Time) {
	s.vacate(p)
	s.toParked(p, reasons.New(reasons.BackingOff, "the pod was let through and not heard of for %v", s.options.lease(p)), now)
	s.cool(p, now.Add(s.options.MaxBackoff))
}

// cool makes an unschedulable pod back off until a time.
func (s *Store) cool(p *pod, until time.Time) {
	s.enter(p, state.BackingOff)
	s.pending.Timers.Set(&p.timer, until)
}

// holdsDue is when the first hold times out; zero for never. On a standby no hold times
// out: that is left to the leader.
func (s *Store) holdsDue() time.Time {
	if s.standby {
		return time.Time{}
	}
	return s.preemption.Holds.Due(s.preemption.HoldTimeout, s.dueFrom())
}

// isPlaced tells whether a preemptor has a node, even if its bind is not seen yet. Its
// hold then does not time out.
func (s *Store) isPlaced(asker types.UID) bool {
	p := s.pods[asker]
	return p != nil && p.state.HasNode()
}

// dueFrom returns the start of each hold's time-out. The holds of a PodGroup that has not
// started share one time-out, which counts from the latest of them. With separate ones,
// the first member would lose its node while room is made for the last one. Also, while
// one member holds a node, another member that lost its hold would get that node again,
// because it fits beside it, and the group could keep the node from all others without a
// start. For the same reason a loss counts for the whole group.
//
// A pod in Permit keeps its hold as long as it is there. It does not extend the holds of
// the other members: members that come to Permit in turns would keep a node for ever.
func (s *Store) dueFrom() reservations.From {
	known := map[*podGroup]time.Time{} // zero: no time-out
	return func(asker types.UID, own time.Time) (time.Time, bool) {
		p := s.pods[asker]
		switch {
		case p == nil:
			return own, true
		case p.state.HasNode():
			return time.Time{}, false
		case p.RequiredNode != "":
			if h, _ := s.preemption.Holds.Of(asker); len(h.Chosen) == 0 {
				own = latest(own, h.Since.Add(s.preemption.Required.StartDelay)) // before that, no victim may be chosen
			}
			return own, true
		case !p.apart():
			return own, true
		}
		from, ok := known[p.mates]
		if !ok {
			from = lastFrom(s.preemption.Holds, p.mates)
			known[p.mates] = from
		}
		return from, !from.IsZero()
	}
}

// lastFrom is the latest time from which the time-out of a hold of the group counts.
func lastFrom(holds *preemption.Holds, g *podGroup) time.Time {
	var last time.Time
	for _, m := range g.Members() {
		if from, holds := holds.TimeFrom(m.UID); holds && m.RequiredNode == "" {
			last = latest(last, from)
		}
	}
	return last
}

// timeOutHolds ends the holds that were not used in time.
func (s *Store) timeOutHolds(now time.Time) {
	if due := s.holdsDue(); due.IsZero() || due.After(now) {
		return
	}
	for _, h := range s.preemption.Holds.Overdue(now, s.preemption.HoldTimeout, s.dueFrom()) {
		if p := s.pods[h.Asker]; p != nil {
			s.endHold(p, reservations.TimedOut, timedOut(p, s.preemption.HoldTimeout, &h), now)
		}
	}
	s.preemption.Holds.TimesChange()
}

// timedOut is the reason of a hold that its pod did not use in time.
func timedOut(p *pod, timeout time.Duration, h *reservations.Hold) reasons.Reason {
	if p.apart() && h.Clear() {
		return reasons.New(reasons.HoldTimedOut, "PodGroup %s did not start within %v of when the last node that its pods hold was clear", p.mates.Name(), timeout)
	}
	switch {
	case !h.Clear() && len(h.Chosen) > 0:
		return reasons.New(reasons.HoldTimedOut, "pods that were to leave node %s are there %v after they were told: %d", h.Node, timeout, len(h.Victims))
	case len(h.Chosen) == 0 && (h.Patient || !h.Clear()):
		return reasons.New(reasons.HoldTimedOut, "node %s was held for %v and no pod was chosen to make room there", h.Node, timeout)
	}
	return reasons.New(reasons.HoldTimedOut, "node %s was clear for %v and the pod did not start there", h.Node, timeout)
}

// planAnew allows plans for the members of a PodGroup again, regardless of earlier
// losses: it has started, or its minMember changed.
func (s *Store) planAnew(g *podGroup) {
	if g.Data.losses.Count == 0 {
		return
	}
	g.Data.losses = preemption.Losses{}
	for _, m := range g.InState(state.GroupBlocked, state.Unschedulable, state.BackingOff) {
		m.asks.RetryAt = time.Time{}
		s.arm(m, time.Time{})
	}
}
