package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// next is the next deadline; zero for none.
func (s *core) next() time.Time {
	return earliest(s.model.PreemptionQueue.Due(&s.model.Preemption.Limiter), s.model.Preemption.Watches.Due(), s.model.Pending.Lost.Due(), s.holds.HoldsDue(),
		s.model.Pending.Groups.Due(), s.model.Cache.Capacity.Due(), s.model.Cache.Empty.Due(), s.model.Preemption.NodeBound.Due(), s.model.Preemption.Undeletable.Due(), s.model.Pending.Timers.Next())
}

// Tick does what is due: pods return to the order when their back-off ends, slots are
// taken back when their lease expires, queues that stayed empty are removed.
func (s *Store) Tick(now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.model.Out.LastDeadline = time.Time{}
	if s.model.Cache.Capacity.Tick(now) {
		s.model.TellCapacity()
	}
	for _, node := range s.model.Preemption.NodeBound.Expire(now) {
		s.model.Freed(node)
	}
	for _, uid := range s.model.Preemption.Undeletable.Expire(now) {
		s.model.TouchPod(s.model.Pods[uid])
	}
	for p, ok := s.model.Pending.Timers.Due(now); ok; p, ok = s.model.Pending.Timers.Due(now) {
		switch p.State {
		case state.BackingOff:
			s.states.LeaveRetryOrder(p)
			if p.Asker.Holds() || p.Foreign {
				s.states.LetThrough(p, now)
				continue
			}
			s.states.ToQueued(p)
		case state.Admitted, state.Scheduling:
			if s.model.Standby {
				s.model.Pending.Timers.Set(&p.Timer, now.Add(s.model.Options.Lease(p)))
				continue
			}
			s.states.Expire(p, now)
		case state.Bound:
			s.life.Overstay(p, now)
		}
	}
	s.states.BringBackLost(now)
	s.plans.EnqueueDue(now)
	s.holds.TimeOutHolds(now)
	s.life.Sweep(now)
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
