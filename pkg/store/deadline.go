package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// next is the next deadline; zero for none.
func (s *core) next() time.Time {
	m := s.model
	return earliest(
		m.PreemptionQueue.Due(&m.Preemption.Limiter),
		m.Preemption.Watches.Due(),
		m.Preemption.NodeBound.Due(),
		m.Preemption.Undeletable.Due(),
		s.holds.HoldsDue(),
		m.Pending.FreedUnseen.Due(),
		m.Pending.PodGroups.Due(),
		m.Pending.Timers.Next(),
		m.Cache.Capacity.Due(),
		m.Cache.Empty.Due(),
	)
}

// Tick does what is due: pods return to the order when their back-off ends, slots are
// taken back when their lease expires, queues that stayed empty are removed.
func (s *Store) Tick(now time.Time) {
	s.mu.Lock()
	defer s.endChange(now)
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
		s.timerEnded(p, now)
	}
	s.states.BringBackWaiting(now)
	s.plans.EnqueueDue(now)
	s.holds.TimeOutHolds(now)
	s.life.RemoveEmptyQueues(now)
}

// timerEnded handles the end of a pod's timer: of its back-off, of its lease, or of the time
// for which it counts as leaving.
func (s *core) timerEnded(p *model.Pod, now time.Time) {
	switch p.State {
	case state.BackingOff:
		if p.Asker.HoldsNode() || p.Foreign {
			s.states.LetThrough(p, now)
		} else {
			s.states.ToQueued(p)
		}
	case state.Admitted, state.Scheduling:
		if s.model.Standby { // its slots do not expire
			s.states.StartLease(p, now)
		} else {
			s.states.Expire(p, now)
		}
	case state.Bound:
		s.life.LeavingTimeEnded(p, now)
	}
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
