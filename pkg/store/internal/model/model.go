package model

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// NotStarted is the reason that a pod waits before Start.
func (x *Model) NotStarted() reasons.Reason {
	if !x.NotReady.None() {
		return x.NotReady
	}
	return reasons.New(reasons.Starting, "the scheduler has not seen all pods and queues yet")
}

// EndChange publishes a change and stamps it with its time.
func (x *Model) EndChange(now time.Time) {
	x.Show()
	x.History.End(x.Cache.Tree().TreeGeneration(), x.Cache.Snapshot, now)
}

// Show marks what was published as out of date, or publishes it.
func (x *Model) Show() {
	x.Cache.Show()
	x.Preemption.Holds.Publish()
}

// Outbox has what is to be done outside the store, until its callers take it, and the
// channels that tell them.
type Outbox struct {
	Activate []objects.Ref // pods that were admitted
	Vacated  []string      // nodes where a hold ended
	Work     []output.Work // for the executor
	Told     time.Time     // the next deadline as last returned to the caller
	Wake     chan struct{} // activate, vacated, or the deadline
	ToWrite  chan struct{} // work
}

func newOutbox() Outbox {
	return Outbox{Wake: make(chan struct{}, 1), ToWrite: make(chan struct{}, 1)}
}

// Freed notes a node with more room, if it is one: pods that were refused it may try again.
func (o *Outbox) Freed(node string, is bool) {
	if is {
		o.Vacated = append(o.Vacated, node)
	}
}

// Moved tells whether the next deadline is earlier than the one last returned; zero is no
// deadline.
func (o *Outbox) Moved(next time.Time) bool {
	if next.IsZero() || (!o.Told.IsZero() && !next.Before(o.Told)) {
		return false
	}
	o.Told = next
	return true
}

// Take empties a list and returns what it had.
func Take[T any](list *[]T) []T {
	taken := *list
	*list = nil
	return taken
}

// Signal sends a value unless the receiver has one that it has not taken yet.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Earliest returns the first of some times; zero means never.
func Earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// AtMostEvery is the shortest time between two plans for one preemptor.
const AtMostEvery = preemption.AtMostEvery
