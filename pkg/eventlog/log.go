package eventlog

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

const (
	// Size is how many records are kept, as YuniKorn has it: about 10 MB.
	Size = 100_000
	// interval is how often the history is taken without a reader.
	interval = 200 * time.Millisecond
)

// Source is a reader of facts of a store. The log is its only consumer.
type Source interface {
	Take(spare []output.Event) (events []output.Event, lost int)
}

// Log is the last records. Make one with New.
type Log struct {
	source Source
	size   int

	mu      locks.Mutex      // guards the rest; taken before the lock of the store
	spare   []output.Event   // a buffer for the source
	nanos   int64            // the time of the event that records are made of
	queues  *queues.Snapshot // as the records so far have them; nil before Start
	lost    int64            // see Collect
	ring    []Record         // the record with number n is at n % size
	next    uint64           // number of the next record
	changed chan struct{}    // closed with the next record
}

// New returns a log of at most size records of what the source has from now on.
func New(source Source, size int) *Log {
	return &Log{source: source, size: size, changed: make(chan struct{})}
}

// Run takes what happened until the context ends, and logs what was lost, also where a
// reader took it.
func (l *Log) Run(ctx context.Context, clock clock.WithTicker, logger klog.Logger) {
	var said int64
	loop.Every(ctx, clock, interval, func() {
		if lost := l.Collect(); lost > said {
			logger.Info("Events were lost: more happened than the log could take. /ws/v1/events lacks them; scheduling is not affected", "lost", lost-said)
			said = lost
		}
	})
}

// Collect makes records of what happened since the last call. It returns how many things that
// happened since the start have no record, because they were too many at a time.
func (l *Log) Collect() (lost int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, missed := l.source.Take(l.spare[:0])
	before := l.next
	for i := range events {
		l.nanos = events[i].At.UnixNano()
		l.record(&events[i])
	}
	if l.next > before {
		close(l.changed)
		l.changed = make(chan struct{})
	}
	clear(events)
	l.spare, l.lost = events, l.lost+int64(missed)
	return l.lost
}

// put puts a record at the end of the ring.
func (l *Log) put(r Record) {
	r.Nanos = l.nanos
	if len(l.ring) < l.size {
		l.ring = append(l.ring, r)
	} else {
		l.ring[l.next%uint64(l.size)] = r
	}
	l.next++
}

// lowest is the number of the first record that is kept.
func (l *Log) lowest() uint64 { return l.next - uint64(len(l.ring)) }

// Bounds are the numbers of the first record that is kept and of the one that comes
// next; the same if there are none.
func (l *Log) Bounds() (lowest, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lowest(), l.next
}

// Range appends to a list at most limit records from the one with the number first on; none
// if that one is not kept any more, or did not happen yet. It also returns the bounds of that
// moment, and a channel that is closed with the record after them.
func (l *Log) Range(out []Record, first uint64, limit int) (records []Record, lowest, next uint64, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first >= l.lowest() {
		for n := first; n < l.next && n-first < uint64(limit); n++ {
			out = append(out, l.ring[n%uint64(l.size)])
		}
	}
	return out, l.lowest(), l.next, l.changed
}
