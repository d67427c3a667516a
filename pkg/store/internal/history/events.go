package history

import (
	"fmt"
	"slices"
	"time"
)

// Topic is a set of events that a reader follows.
type Topic uint8

const (
	// Facts are what happened to pods, applications, nodes and queues.
	Facts Topic = iota
	// Decisions are decisions about preemptors, and their outcome.
	Decisions
	topics
)

// takenAtOnce is the largest number of events that one Take returns, so that the lock of
// the caller is not held for long.
const takenAtOnce = 4096

// spareKept is the largest buffer, in events, that is kept while there are no events.
const spareKept = 1 << 13

// Events is a bounded list of events for several readers, each of one topic. The events
// of one change get its time when it ends, and readers see them from then on. Events of a
// topic that has no reader are not kept. If a reader is too slow, the oldest events go
// first, and are counted as lost. Make one with NewEvents.
type Events[E any] struct {
	limit   int
	stamp   func(*E, time.Time)
	list    []entry[E]
	first   uint64 // number of list[0]
	ended   int    // how many of the list belong to changes that ended
	readers []*Reader
	follows [topics]bool
	paused  [topics]bool
}

type entry[E any] struct {
	topic Topic
	event E
}

// Reader is the place of a reader in the list.
type Reader struct {
	topic Topic
	next  uint64 // number of the next event to look at
	lost  int
	ready chan struct{}
}

// Ready delivers a value when there are events to take.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

// NewEvents returns a list of at most limit events; stamp sets the time of an event.
func NewEvents[E any](limit int, stamp func(*E, time.Time)) Events[E] {
	return Events[E]{limit: limit, stamp: stamp}
}

// Follow adds a reader of the events of a topic from now on.
func (l *Events[E]) Follow(t Topic) *Reader {
	r := &Reader{topic: t, next: l.first + uint64(len(l.list)), ready: make(chan struct{}, 1)}
	l.readers = append(l.readers, r)
	l.follows[t] = true
	return r
}

// Pause keeps no events of a topic until Resume, even if it has a reader.
func (l *Events[E]) Pause(t Topic) { l.paused[t] = true }

// Resume ends a Pause.
func (l *Events[E]) Resume(t Topic) { l.paused[t] = false }

// Wants tells whether events of the topic are kept: it has a reader and is not paused.
func (l *Events[E]) Wants(t Topic) bool { return l.follows[t] && !l.paused[t] }

// Add adds an event to the current change.
func (l *Events[E]) Add(t Topic, e E) {
	if !l.Wants(t) {
		return
	}
	if len(l.list) >= l.limit {
		l.drop(max(l.limit/8, 1))
	}
	l.list = append(l.list, entry[E]{t, e})
}

// AddFirst adds an event before all others of the current change.
func (l *Events[E]) AddFirst(t Topic, e E) {
	l.Add(t, e)
	if last := len(l.list) - 1; l.Wants(t) && l.ended < last {
		added := l.list[last]
		copy(l.list[l.ended+1:], l.list[l.ended:last])
		l.list[l.ended] = added
	}
}

// drop loses the n oldest events. It drops several at a time, because each time moves all
// others.
func (l *Events[E]) drop(n int) {
	for _, r := range l.readers {
		for number := max(r.next, l.first); number < l.first+uint64(n); number++ {
			if l.list[number-l.first].topic == r.topic {
				r.lost++
			}
		}
	}
	l.forget(n)
}

// forget removes the n oldest events.
func (l *Events[E]) forget(n int) {
	l.list = slices.Delete(l.list, 0, n)
	l.first += uint64(n)
	l.ended = max(l.ended-n, 0)
	if len(l.list) == 0 && cap(l.list) > spareKept {
		l.list = nil
	}
}

// EndChange ends the current change: its events get the time and are for readers.
func (l *Events[E]) EndChange(now time.Time) {
	if l.ended == len(l.list) {
		return
	}
	var added [topics]bool
	for i := range l.list[l.ended:] {
		x := &l.list[l.ended+i]
		l.stamp(&x.event, now)
		added[x.topic] = true
	}
	l.ended = len(l.list)
	for _, r := range l.readers {
		if added[r.topic] {
			r.signal()
		}
	}
}

func (r *Reader) signal() {
	select {
	case r.ready <- struct{}{}:
	default: // the reader has not taken the last signal yet
	}
}

// Take appends the next events of a reader to a list, in order, and returns how many were
// lost before them since the last call. It appends at most 4,096 events; a reader calls
// it until it appends none.
func (l *Events[E]) Take(r *Reader, into []E) (events []E, lost int) {
	lost, r.lost = r.lost, 0
	at := int(max(r.next, l.first) - l.first)
	for left := takenAtOnce; at < l.ended && left > 0; at++ {
		if x := &l.list[at]; x.topic == r.topic {
			into = append(into, x.event)
			left--
		}
	}
	r.next = l.first + uint64(at)
	l.trim()
	return into, lost
}

// trim forgets what all readers have taken or do not follow, once it is most of the list.
func (l *Events[E]) trim() {
	all := l.first + uint64(l.ended)
	for _, r := range l.readers {
		for r.next = max(r.next, l.first); r.next < all && l.list[r.next-l.first].topic != r.topic; r.next++ {
		}
		all = min(all, r.next)
	}
	if n := int(all - l.first); n > 0 && n >= len(l.list)/2 {
		l.forget(n)
	}
}

// Len is the number of events that are kept.
func (l *Events[E]) Len() int { return len(l.list) }

// Check verifies the bound, and that no reader is beyond the events that ended.
func (l *Events[E]) Check() error {
	if len(l.list) > l.limit || l.ended > len(l.list) {
		return fmt.Errorf("history: %d events of at most %d, %d of them ended", len(l.list), l.limit, l.ended)
	}
	for i, r := range l.readers {
		if r.next > l.first+uint64(len(l.list)) {
			return fmt.Errorf("history: reader %d waits for event %d, and the next one is %d", i, r.next, l.first+uint64(len(l.list)))
		}
	}
	return nil
}
