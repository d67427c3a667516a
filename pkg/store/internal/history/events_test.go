package history_test

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

// event is a numbered event with its time.
type event struct {
	n  int
	at time.Time
}

func stamp(e *event, now time.Time) { e.at = now }

func newEvents(limit int) history.Events[event] { return history.NewEvents(limit, stamp) }

func numbers(events []event) (out []int) {
	for _, e := range events {
		out = append(out, e.n)
	}
	return out
}

// Each reader gets the events of its topic once, in order, or has them counted as lost.
func TestEventsReachEachReaderOnce(t *testing.T) {
	for seed := range int64(50) {
		r := rand.New(rand.NewSource(seed))
		l := newEvents(20)
		readers := []*history.Reader{l.Follow(history.Facts), l.Follow(history.Decisions)}
		added, got, lost := [2]int{}, [2]int{}, [2]int{}
		last := [2]int{-1, -1}
		take := func(i int) {
			events, missing := l.Take(readers[i], nil)
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
			topic := r.Intn(2)
			l.Add(history.Topic(topic), event{n: n})
			added[topic]++
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
			if got[i]+lost[i] != added[i] {
				t.Errorf("seed %d: reader %d got %d and lost %d of %d", seed, i, got[i], lost[i], added[i])
			}
		}
	}
}

func TestEventsOfAChangeHaveItsTime(t *testing.T) {
	l := newEvents(10)
	r := l.Follow(history.Facts)
	l.Add(history.Facts, event{n: 1})
	l.EndChange(time.Unix(1, 0))
	l.Add(history.Facts, event{n: 2})
	l.AddFirst(history.Facts, event{n: 3})
	if events, _ := l.Take(r, nil); !slices.Equal(numbers(events), []int{1}) {
		t.Errorf("before the change ends: %v", numbers(events))
	}
	l.EndChange(time.Unix(2, 0))
	events, _ := l.Take(r, nil)
	if !slices.Equal(numbers(events), []int{3, 2}) || events[0].at != time.Unix(2, 0) || events[1].at != time.Unix(2, 0) {
		t.Errorf("after the change: %+v", events)
	}
}

// A topic without a reader is not kept, and a reader is signaled for its topic only.
func TestEventsAreKeptForReadersOnly(t *testing.T) {
	l := newEvents(10)
	l.Add(history.Facts, event{n: 1})
	l.EndChange(time.Unix(1, 0))
	r := l.Follow(history.Facts)
	if events, lost := l.Take(r, nil); len(events) > 0 || lost > 0 || l.Wants(history.Decisions) || !l.Wants(history.Facts) {
		t.Errorf("%v, %d lost", events, lost)
	}
	l.Add(history.Decisions, event{n: 2})
	l.EndChange(time.Unix(2, 0))
	select {
	case <-r.Ready():
		t.Error("signaled for an event that it does not follow")
	default:
	}
	l.Add(history.Facts, event{n: 3})
	l.EndChange(time.Unix(3, 0))
	select {
	case <-r.Ready():
	default:
		t.Error("not signaled")
	}
	if events, _ := l.Take(r, nil); !slices.Equal(numbers(events), []int{3}) {
		t.Errorf("%v", numbers(events))
	}
}

func TestEventsOfAPausedTopicAreNotKept(t *testing.T) {
	l := newEvents(10)
	l.Pause(history.Facts)
	r := l.Follow(history.Facts)
	l.Add(history.Facts, event{n: 1})
	l.AddFirst(history.Facts, event{n: 2})
	l.EndChange(time.Unix(1, 0))
	wanted := l.Wants(history.Facts)
	l.Resume(history.Facts)
	l.Add(history.Facts, event{n: 3})
	l.EndChange(time.Unix(2, 0))
	if events, lost := l.Take(r, nil); wanted || !l.Wants(history.Facts) || lost > 0 || !slices.Equal(numbers(events), []int{3}) {
		t.Errorf("%v, %d lost", numbers(events), lost)
	}
}

// A call takes a bounded number of events, and the rest follows.
func TestEventsAreTakenInPortions(t *testing.T) {
	l := newEvents(10_000)
	r := l.Follow(history.Facts)
	for n := range 9000 {
		l.Add(history.Facts, event{n: n})
	}
	l.EndChange(time.Unix(1, 0))
	var all []event
	for calls := 1; ; calls++ {
		before := len(all)
		if all, _ = l.Take(r, all); len(all) == before {
			break
		}
		if len(all)-before > 4096 || calls > 3 {
			t.Fatalf("%d events by call %d", len(all)-before, calls)
		}
	}
	if len(all) != 9000 || all[8999].n != 8999 {
		t.Errorf("%d events", len(all))
	}
}

// A reader of a topic without events does not keep those of other topics.
func TestEventsAreForgottenOnceTaken(t *testing.T) {
	l := newEvents(1000)
	l.Follow(history.Decisions)
	r := l.Follow(history.Facts)
	for n := range 100 {
		l.Add(history.Facts, event{n: n})
		l.EndChange(time.Unix(1, 0))
		if l.Take(r, nil); l.Len() > 0 {
			t.Fatalf("%d events are kept after event %d", l.Len(), n)
		}
	}
}

// Adding and taking allocate nothing once there are buffers.
func TestEventsAllocateNothing(t *testing.T) {
	l := newEvents(1 << 16)
	r := l.Follow(history.Facts)
	var spare []event
	got := testing.AllocsPerRun(100, func() {
		for n := range 100 {
			l.Add(history.Facts, event{n: n})
			l.EndChange(time.Unix(1, 0))
		}
		spare, _ = l.Take(r, spare[:0])
	})
	if got > 0 {
		t.Errorf("%v allocations for 100 events", got)
	}
}
