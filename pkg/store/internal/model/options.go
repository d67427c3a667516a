package model

import (
	"cmp"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Options are the settings of a store, given once to New. A zero field means its default.
type Options struct {
	// Window and MaxWindow are the smallest and the largest number of pods let through
	// the gate at a time (4 and 1,024).
	Window, MaxWindow int
	// SlotLease is how long a pod keeps its slot without progress of its cycle (30s); see Lease.
	SlotLease time.Duration
	// InitialBackoff and MaxBackoff are the scheduler's back-off for pods that
	// failed (1s and 10s); negative means none.
	InitialBackoff, MaxBackoff time.Duration
	// GenerateUniqueAppID: see placement.Identify.
	GenerateUniqueAppID bool
	// DynamicQueues bound the queues that rules make (no bound).
	DynamicQueues queues.DynamicLimits
	// QueueGrace is how long an empty dynamic or draining queue is kept (10s).
	QueueGrace time.Duration
	// Standby tells that another process schedules until StartLeading. A standby does not schedule
	// the pods that it admits, so their slots do not expire.
	Standby bool
}

func (o *Options) setDefaults() {
	o.Window = cmp.Or(o.Window, 4)
	o.MaxWindow = max(cmp.Or(o.MaxWindow, 1024), o.Window)
	o.SlotLease = cmp.Or(o.SlotLease, 30*time.Second)
	o.InitialBackoff = cmp.Or(o.InitialBackoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 10*time.Second)
	o.QueueGrace = cmp.Or(o.QueueGrace, 10*time.Second)
}

// Lease is how long an admitted pod keeps its slot without progress. It is shorter for a
// pod that failed before, because others wait for its result, and a hundredth longer for
// each pod that has a slot already: the scheduler tries one after another.
func (o *Options) Lease(p *Pod, others int) time.Duration {
	lease := o.SlotLease
	if p.EquivalenceClass != nil {
		lease /= 10
	}
	return lease * time.Duration(100+others) / 100
}

// Backoff is how long a pod waits after its n-th failure: the same as in the scheduler's
// queue.
func (o *Options) Backoff(n int) time.Duration {
	d := max(o.InitialBackoff, 0)
	for i := 1; i < n && d < o.MaxBackoff; i++ {
		d *= 2
	}
	return min(d, max(o.MaxBackoff, 0))
}
