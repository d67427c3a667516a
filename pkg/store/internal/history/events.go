package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// takenAtOnce is the largest number of events that one Take returns, so that the lock of
// the caller is not held for long.
const takenAtOnce = 4096

// spareKept is the largest buffer, in events, that is kept while there are no events.
const spareKept = 1 << 13

// Events is a bounded list of events for several readers. The events of one change get its
// time when it ends, and readers see them from then on. Without a reader no events are
// kept. If a reader is too slow, the oldest events go first, and are counted as lost. Make
// one with NewEvents.
type Events struct {
	// Paused is true while no events are kept, even if there is a reader.
	Paused bool

	limit   int
	list    []output.Event
	first   uint64 // number of list[0]
	ended   int    // how many of the list belong to changes that ended
	readers []*Reader
}

// Reader is the place of a reader in the list.
type Reader struct {
	events *Events
	next   uint64 // number of the next event to look at
	ready  chan struct{}
}

// Ready delivers a value when there are events to take.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

// NewEvents returns a list of at most limit events.
func NewEvents(limit int) Events {
	return Events{limit: limit}
}

// Follow adds a reader of the events from now on. The list must not be copied after that.
func (l *Events) Follow() *Reader {
	r := &Reader{events: l, next: l.first + uint64(len(l.list)), ready: make(chan struct{}, 1)}
	l.readers = append(l.readers, r)
	return r
}

// Wants tells whether events are kept.
func (l *Events) Wants() bool { return len(l.readers) > 0 && !l.Paused }

// Add adds an event to the current change.
func (l *Events) Add(e output.Event) {
	if !l.Wants() {
		return
	}
	if len(l.list) >= l.limit {
		l.forget(max(l.limit/8, 1)) // several at a time, because each time moves all others
	}
	l.list = append(l.list, e)
}

// AddFirst adds an event before all others of the current change.
func (l *Events) AddFirst(e output.Event) {
	if l.Add(e); l.Wants() {
		last := len(l.list) - 1
		copy(l.list[l.ended+1:], l.list[l.ended:last])
		l.list[l.ended] = e
	}
}

// forget removes the n oldest events.
func (l *Events) forget(n int) {
	l.list = slices.Delete(l.list, 0, n)
	l.first += uint64(n)
	l.ended = max(l.ended-n, 0)
	if len(l.list) == 0 && cap(l.list) > spareKept {
		l.list = nil
	}
}

// EndChange ends the current change: its events get the time and are for readers.
func (l *Events) EndChange(now time.Time) {
	if l.ended == len(l.list) {
		return
	}
	for ; l.ended < len(l.list); l.ended++ {
		l.list[l.ended].At = now
	}
	for _, r := range l.readers {
		Signal(r.ready)
	}
}

// Take appends the next events to a list, in order, and returns how many were lost before
// them since the last call. It appends at most 4,096 events; a reader calls it until it
// appends none.
func (r *Reader) Take(into []output.Event) (events []output.Event, lost int) {
	l := r.events
	if l.first > r.next {
		lost = int(l.first - r.next)
		r.next = l.first
	}
	at := int(r.next - l.first)
	until := min(max(l.ended, at), at+takenAtOnce)
	into = append(into, l.list[at:until]...)
	r.next = l.first + uint64(until)
	l.trim()
	return into, lost
}

// trim forgets what all readers have taken, once it is most of the list.
func (l *Events) trim() {
	all := l.first + uint64(l.ended)
	for _, r := range l.readers {
		all = min(all, max(r.next, l.first))
	}
	if n := int(all - l.first); n > 0 && n >= len(l.list)/2 {
		l.forget(n)
	}
}

// Check verifies the bound, and that no reader is beyond the events that ended.
func (l *Events) Check() error {
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

// Signal sends a value unless the receiver has one that it has not taken yet.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
