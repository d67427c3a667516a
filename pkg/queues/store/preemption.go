package store

import (
	"reflect"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// PreemptionOptions say when and how fast queues take back what is theirs.
type PreemptionOptions struct {
	// RetryInterval is the wait before an asker that was refused plans again.
	RetryInterval time.Duration
	// Round and MaxVictims bound the pace: at most so many victims in a round, in
	// the whole cluster; 0 is no bound.
	Round      time.Duration
	MaxVictims int
	// StrictGuarantee keeps an asker from carrying its queue over its guarantee (law 4).
	StrictGuarantee bool
	// IgnorePodOptOut makes only the PriorityClass count for law 1.
	IgnorePodOptOut bool
	// HoldTimeout is how long a hold lasts after its last victim is gone.
	HoldTimeout time.Duration
	// MaxVictimGrace bounds the grace period of victims; 0 is no bound.
	MaxVictimGrace time.Duration
	// Required are the settings of decisions for pods that require a node, without
	// the filters.
	Required required.Params
}

// DefaultPreemption are the options of a store that is told none.
func DefaultPreemption() PreemptionOptions {
	return PreemptionOptions{RetryInterval: 15 * time.Second, Round: time.Second, HoldTimeout: 10 * time.Minute}
}

// atMostEvery is the shortest time between two plans for one asker.
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

// grace is how long a pod has to stop once it is preempted.
func (o *PreemptionOptions) grace(p *Pod) time.Duration {
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

// until returns when so many victims may be chosen: now, or when the next round
// begins. More than a round may have are chosen in an empty round.
func (p *pace) until(n int, o PreemptionOptions, now time.Time) time.Time {
	end := p.began.Add(o.Round)
	if o.MaxVictims <= 0 || !now.Before(end) || p.victims == 0 || p.victims+n <= o.MaxVictims {
		return now
	}
	return end
}

// spend counts victims that were chosen.
func (p *pace) spend(n int, o PreemptionOptions, now time.Time) {
	if !now.Before(p.began.Add(o.Round)) {
		p.began, p.victims = now, 0
	}
	p.victims += n
}
