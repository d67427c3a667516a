package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// spareKept is the largest buffer, in events, that is used again.
const spareKept = 1 << 13

// Events is a bounded list of events for one reader. The events of one change get its time
// when it ends, and the reader sees them from then on. If the reader is too slow, the oldest
// events go first, and are counted as lost. Make one with NewEvents.
type Events struct {
	limit int
	list  []output.Event
	ended int // how many of the list belong to changes that ended
	lost  int // since the last Take
	ready chan struct{}
}

// NewEvents returns a list of at most limit events.
func NewEvents(limit int) *Events { return &Events{limit: limit, ready: make(chan struct{}, 1)} }

// Ready delivers a value when there are events to take.
func (l *Events) Ready() <-chan struct{} { return l.ready }

// Add adds an event to the current change.
func (l *Events) Add(e output.Event) {
	if len(l.list) >= l.limit {
		n := max(l.limit/8, 1) // several at a time, because each time moves all others
		l.list = slices.Delete(l.list, 0, n)
		l.ended, l.lost = max(l.ended-n, 0), l.lost+n
	}
	l.list = append(l.list, e)
}

// AddFirst adds an event before all others of the current change.
func (l *Events) AddFirst(e output.Event) {
	l.Add(e)
	last := len(l.list) - 1
	copy(l.list[l.ended+1:], l.list[l.ended:last])
	l.list[l.ended] = e
}

// EndChange ends the current change: its events get the time and are for the reader.
func (l *Events) EndChange(now time.Time) {
	if l.ended == len(l.list) {
		return
	}
	for ; l.ended < len(l.list); l.ended++ {
		l.list[l.ended].At = now
	}
	Signal(l.ready)
}

// Take returns the events of the changes that ended, in order, and how many were lost before
// them since the last call. The next events are kept in the buffer spare, which may be nil.
func (l *Events) Take(spare []output.Event) (events []output.Event, lost int) {
	if l.ended == 0 {
		return spare[:0], 0
	}
	if cap(spare) > spareKept {
		spare = nil
	}
	events, lost = l.list[:l.ended], l.lost
	l.list = append(spare[:0], l.list[l.ended:]...)
	l.ended, l.lost = 0, 0
	return events, lost
}

// Check verifies the bound.
func (l *Events) Check() error {
	if len(l.list) > l.limit || l.ended > len(l.list) {
		return fmt.Errorf("history: %d events of at most %d, %d of them ended", len(l.list), l.limit, l.ended)
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
