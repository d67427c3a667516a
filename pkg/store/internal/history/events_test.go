package history_test

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

// event is a numbered event with its time.
type event struct {
	n  int
	at time.Time
}

func stamp(e *event, now time.Time) { e.at = now }

func newEvents(limit int) history.Events[event] { return history.NewEvents(limit, stamp) }

// taken are the numbers of the events that a reader gets.
func taken(r *history.Reader[event]) (out []int) {
	events, _ := r.Take(nil)
	for _, e := range events {
		out = append(out, e.n)
	}
	return out
}

// Each reader gets each event once, in order, or has it counted as lost.
func TestEventsReachEachReaderOnce(t *testing.T) {
	for seed := range int64(50) {
		r := rand.New(rand.NewSource(seed))
		l := newEvents(20)
		readers := []*history.Reader[event]{l.Follow(), l.Follow()}
		added, got, lost := 0, [2]int{}, [2]int{}
		last := [2]int{-1, -1}
		take := func(i int) {
			events, missing := readers[i].Take(nil)
			lost[i] += missing
			for _, e := range events {
				if e.n <= last[i] || e.at.IsZero() {
					t.Fatalf("seed %d: reader %d gets %+v after %d", seed, i, e, last[i])
				}
				last[i] = e.n
				got[i]++
			}
		}
		for n := range 500 {
			l.Add(event{n: n})
			added++
			if r.Intn(3) > 0 {
				l.EndChange(time.Unix(int64(n+1), 0))
			}
			switch r.Intn(12) {
			case 0:
				take(0)
			case 1, 2, 3:
				take(1)
			}
			if err := l.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		l.EndChange(time.Unix(1000, 0))
		take(0)
		take(1)
		for i := range readers {
			expect.That(t, got[i]+lost[i] == added,
				"seed %d: reader %d got %d and lost %d of %d", seed, i, got[i], lost[i], added)
		}
	}
}

func TestEventsOfAChangeHaveItsTime(t *testing.T) {
	l := newEvents(10)
	r := l.Follow()
	l.Add(event{n: 1})
	l.EndChange(time.Unix(1, 0))
	l.Add(event{n: 2})
	l.AddFirst(event{n: 3})
	expect.Same(t, "before the change ends", []int{1}, taken(r))
	l.EndChange(time.Unix(2, 0))
	events, _ := r.Take(nil)
	want := []event{{3, time.Unix(2, 0)}, {2, time.Unix(2, 0)}}
	expect.That(t, slices.Equal(events, want), "after the change: %+v", events)
}

// Events without a reader are not kept, and a reader is signaled.
func TestEventsAreKeptForReadersOnly(t *testing.T) {
	l := newEvents(10)
	wanted := l.Wants()
	l.Add(event{n: 1})
	l.EndChange(time.Unix(1, 0))
	r := l.Follow()
	events, lost := r.Take(nil)
	expect.That(t, len(events) == 0 && lost == 0 && !wanted && l.Wants(), "%v, %d lost", events, lost)
	l.EndChange(time.Unix(2, 0))
	expect.That(t, len(r.Ready()) == 0, "signaled without an event")
	l.Add(event{n: 3})
	l.EndChange(time.Unix(3, 0))
	expect.That(t, len(r.Ready()) == 1, "not signaled")
	expect.Same(t, "taken", []int{3}, taken(r))
}

// A call takes a bounded number of events, and the rest follows.
func TestEventsAreTakenInPortions(t *testing.T) {
	l := newEvents(10_000)
	r := l.Follow()
	for n := range 9000 {
		l.Add(event{n: n})
	}
	l.EndChange(time.Unix(1, 0))
	var all []event
	for calls := 1; ; calls++ {
		before := len(all)
		if all, _ = r.Take(all); len(all) == before {
			break
		}
		if len(all)-before > 4096 || calls > 3 {
			t.Fatalf("%d events by call %d", len(all)-before, calls)
		}
	}
	expect.That(t, len(all) == 9000 && all[8999].n == 8999, "%d events", len(all))
}

// What all readers have taken is not kept.
func TestEventsAreForgottenOnceTaken(t *testing.T) {
	l := newEvents(1000)
	slow, r := l.Follow(), l.Follow()
	for n := range 100 {
		l.Add(event{n: n})
		l.EndChange(time.Unix(1, 0))
		r.Take(nil)
		if slow.Take(nil); l.Len() > 0 {
			t.Fatalf("%d events are kept after event %d", l.Len(), n)
		}
	}
}

// Adding and taking allocate nothing once there are buffers.
func TestEventsAllocateNothing(t *testing.T) {
	l := newEvents(1 << 16)
	r := l.Follow()
	var spare []event
	got := testing.AllocsPerRun(100, func() {
		for n := range 100 {
			l.Add(event{n: n})
			l.EndChange(time.Unix(1, 0))
		}
		spare, _ = r.Take(spare[:0])
	})
	expect.That(t, got == 0, "%v allocations for 100 events", got)
}
