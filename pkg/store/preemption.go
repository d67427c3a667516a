package store

import (
	"reflect"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// PreemptionOptions set when and how fast queues preempt for their guarantees.
type PreemptionOptions struct {
	// RetryInterval is the wait before a refused preemptor is planned for again.
	RetryInterval time.Duration
	// Round and MaxVictims bound the pace: at most MaxVictims victims in a round, in the
	// whole cluster; 0 means no bound.
	Round      time.Duration
	MaxVictims int
	// StrictGuarantee does not let a preemptor take its queue over its guarantee (law 4).
	StrictGuarantee bool
	// IgnorePodOptOut ignores the pods' own settings for law 1: only the PriorityClass
	// counts.
	IgnorePodOptOut bool
	// HoldTimeout is how long a hold lasts after its last victim is gone.
	HoldTimeout time.Duration
	// MaxVictimGrace bounds the grace period of victims; 0 means no bound.
	MaxVictimGrace time.Duration
	// Required has the settings of decisions for pods that require a node, without the
	// filters.
	Required required.Params
}

// DefaultPreemption returns the options of a store without SetPreemption.
func DefaultPreemption() PreemptionOptions {
	return PreemptionOptions{RetryInterval: 15 * time.Second, Round: time.Second, HoldTimeout: 10 * time.Minute}
}

// atMostEvery is the shortest time between two plans for one preemptor.
const atMostEvery = time.Second

// SetPreemption replaces the options.
func (s *Store) SetPreemption(o PreemptionOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.preemption.IgnorePodOptOut != o.IgnorePodOptOut {
		s.touchAll()
	}
	if !reflect.DeepEqual(s.preemption.Required, o.Required) || s.preemption.HoldTimeout != o.HoldTimeout ||
		s.preemption.MaxVictimGrace != o.MaxVictimGrace {
		s.touchAll()
	}
	s.preemption, s.dueAnew = o, true
	s.index.SetStrict(o.StrictGuarantee)
	s.lane.index.SetStrict(o.StrictGuarantee)
	s.asking.order.index.SetStrict(o.StrictGuarantee)
}

// grace is the grace period of a pod if it is preempted.
func (o *PreemptionOptions) grace(p *objects.Pod) time.Duration {
	if o.MaxVictimGrace > 0 {
		return min(p.Grace, o.MaxVictimGrace)
	}
	return p.Grace
}

// Preemption returns the options in force.
func (s *Store) Preemption() PreemptionOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.preemption
}

// pace counts the victims of the current round.
type pace struct {
	began   time.Time
	victims int
}

// until returns when n victims may be chosen: now, or when the next round begins. In a
// round without victims n may exceed MaxVictims.
func (p *pace) until(n int, o PreemptionOptions, now time.Time) time.Time {
	end := p.began.Add(o.Round)
	if o.MaxVictims <= 0 || !now.Before(end) || p.victims == 0 || p.victims+n <= o.MaxVictims {
		return now
	}
	return end
}

// spend counts chosen victims.
func (p *pace) spend(n int, o PreemptionOptions, now time.Time) {
	if !now.Before(p.began.Add(o.Round)) {
		p.began, p.victims = now, 0
	}
	p.victims += n
}
