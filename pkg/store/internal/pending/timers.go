package pending

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
)

// Timer is the deadline of one pod: the end of its lease, of its back-off, or, on a node, of the
// time for which it counts as leaving. It is part of the pod's record. Make one with NewTimer.
type Timer[P any] struct {
	pod  P
	uid  types.UID
	when time.Time
	at   int
}

// NewTimer returns a timer that is not set.
func NewTimer[P any](pod P, uid types.UID) Timer[P] {
	return Timer[P]{pod: pod, uid: uid, at: ranking.Outside}
}

// Place implements the interface of package ranking.
func (t *Timer[P]) Place() *int { return &t.at }

// IsSet tells whether the timer is set.
func (t *Timer[P]) IsSet() bool { return t.at != ranking.Outside }

// When is the time that the timer was set to, also after it was cleared.
func (t *Timer[P]) When() time.Time { return t.when }

// Timers has the timers that are set, ordered by time, then by UID.
type Timers[P any] struct{ heap ranking.Heap[*Timer[P]] }

// newTimers returns no timers.
func newTimers[P any]() Timers[P] {
	return Timers[P]{heap: ranking.New(func(a, b *Timer[P]) bool {
		// UIDs are compared only on ties: this is called often, for records that are not in a
		// CPU cache.
		if c := a.when.Compare(b.when); c != 0 {
			return c < 0
		}
		return cmp.Less(a.uid, b.uid)
	})}
}

// Set sets a timer to a time. It may be set already.
func (x *Timers[P]) Set(t *Timer[P], when time.Time) {
	t.when = when
	x.heap.Update(t, true)
}

// Clear clears a timer, if it is set.
func (x *Timers[P]) Clear(t *Timer[P]) { x.heap.Update(t, false) }

// Next is when the first timer ends; zero if none is set.
func (x *Timers[P]) Next() time.Time {
	if t, ok := x.heap.First(); ok {
		return t.when
	}
	return time.Time{}
}

// Due clears the first timer if it has ended, and returns its pod.
func (x *Timers[P]) Due(now time.Time) (pod P, due bool) {
	t, ok := x.heap.First()
	if !ok || t.when.After(now) {
		return pod, false
	}
	x.Clear(t)
	return t.pod, true
}

// Check verifies the order of the timers.
func (x *Timers[P]) Check() error { return x.heap.Check() }
