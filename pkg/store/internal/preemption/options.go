package preemption

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Options set when and how fast queues preempt for their guarantees.
type Options struct {
	// RetryInterval is the wait before a refused asker is planned for again.
	RetryInterval time.Duration
	// Round and MaxVictims bound the pace: at most MaxVictims victims in a round, in the
	// whole cluster; 0 means no bound.
	Round      time.Duration
	MaxVictims int
	// StrictGuarantee does not let an asker take its queue over its guarantee (law 4).
	StrictGuarantee bool
	// IgnorePodOptOut ignores the pods' own settings for law 1: only the PriorityClass
	// counts.
	IgnorePodOptOut bool
	// HoldTimeout is how long a hold lasts from the time that [reservations.Hold.TimeFrom] returns.
	HoldTimeout time.Duration
	// MaxVictimGrace bounds the grace period of victims; 0 means no bound.
	MaxVictimGrace time.Duration
	// NodeBoundParams has the settings of decisions for node-bound pods, without the filters.
	NodeBoundParams daemonset.Params
}

// Grace is the grace period of a pod if it is preempted.
func (o *Options) Grace(p *objects.Pod) time.Duration {
	if o.MaxVictimGrace > 0 {
		return min(p.Grace, o.MaxVictimGrace)
	}
	return p.Grace
}

// LongestLeaving is the longest grace period with which a deleted pod counts as leaving if no plan
// in force chose it. Our delete can shorten a longer one to the grace period of a victim (Grace).
func (o *Options) LongestLeaving() time.Duration {
	if o.MaxVictimGrace > 0 {
		return min(o.HoldTimeout, o.MaxVictimGrace)
	}
	return o.HoldTimeout
}

// DefaultOptions returns the options of a store that was given none.
func DefaultOptions() Options {
	return Options{RetryInterval: 15 * time.Second, Round: time.Second, HoldTimeout: 10 * time.Minute}
}

// AtMostEvery is the shortest time between two plans for one asker.
const AtMostEvery = time.Second

// Later is the time of the next check of a pod that needs none now. Times are rounded, so
// that many pods share one.
func (o *Options) Later(now time.Time) time.Time {
	return now.Add(o.RetryInterval).Truncate(AtMostEvery).Add(AtMostEvery)
}

// RoundIsFull is the reason that no more pods are preempted in this round.
func (o *Options) RoundIsFull() reasons.Reason {
	return reasons.New(reasons.PreemptionPaced, "at most %d pods may be preempted within %v; the pod is planned for in the next round", o.MaxVictims, o.Round)
}
