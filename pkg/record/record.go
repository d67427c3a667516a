package record

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// mostKept is how many are remembered of the decisions by which a node was held, of the
// refusals, and of the holds that ended.
const mostKept = 1000

// Source is a reader of the decisions of a store.
type Source interface {
	Ready() <-chan struct{}
	Take(spare []output.Event) (events []output.Event, lost int)
}

// Record is what was decided. Make one with New.
type Record struct {
	source   Source
	follower func(*output.Step) // nil for none, as missed
	missed   func(steps int)

	mu        locks.Mutex          // guards the rest
	most      int                  // of each kind that is remembered; mostKept except in tests
	decisions map[string]*Decision // by ID
	held      []string             // those by which a node was held, made last at the end
	refusals  []string             // the refusals, made last at the end
	ended     []EndedHold          // the oldest first
	latest    map[types.UID]string // the last decision about an asker
	current   map[types.UID]string // the decision that its hold is from
	refused   uint64               // counts refusals
	lost      int64
}

// EndedHold is a hold that is over.
type EndedHold struct {
	Asker objects.Ref `json:"asker"`
	// Queue is the asker's leaf; empty for a pod of no queue.
	Queue string    `json:"queue,omitempty"`
	Node  string    `json:"node"`
	Kind  Kind      `json:"kind"`
	Since time.Time `json:"since"`
	Ended time.Time `json:"ended"`
	// End is bound, deleted, superseded, node gone, node unschedulable, timed out or
	// given up.
	End reservations.End `json:"end"`
	// Reason and Message are what people were told; empty for a pod that was bound.
	Reason   reasons.Code `json:"reason,omitempty"`
	Message  string       `json:"message,omitempty"`
	Decision string       `json:"decision,omitempty"`
}

// New returns a record of what a source does from now on.
func New(source Source) *Record {
	return &Record{source: source, most: mostKept, decisions: map[string]*Decision{}, latest: map[types.UID]string{}, current: map[types.UID]string{}}
}

// Follow has a function told of every step, in order, after the record knows it, and another one
// how many steps were lost, whenever some were. The goroutine that records calls both. The step
// is not to be changed. Call it before Run.
func (r *Record) Follow(step func(*output.Step), missed func(steps int)) {
	r.follower, r.missed = step, missed
}

// Run records until the context ends.
func (r *Record) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.source.Ready():
			r.Take()
		}
	}
}

// Take records what there is. Callers use either Take or Run, never both.
func (r *Record) Take() {
	events, lost := r.source.Take(nil)
	r.mu.Lock()
	r.lost += int64(lost)
	r.mu.Unlock()
	if lost > 0 && r.missed != nil {
		r.missed(lost)
	}
	for i := range events {
		step := events[i].Step
		r.add(step)
		if r.follower != nil {
			r.follower(step)
		}
	}
}

// Lost is how many steps were not recorded since there were too many at a time.
func (r *Record) Lost() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Query says which decisions are wanted; an empty field means any.
type Query struct {
	// Namespace and Pod are those of the asker, Queue its leaf or a queue above it.
	Namespace, Pod, Queue string
	// Victim is the name or the UID of a pod that was chosen to go; no hold that ended
	// has one.
	Victim string
	// Limit is how many at most; 0 or less means all.
	Limit int
}

// Wants tells whether something about an asker of a queue is wanted.
func (q *Query) Wants(asker objects.Ref, queue string) bool {
	return (q.Namespace == "" || q.Namespace == asker.Namespace) && (q.Pod == "" || q.Pod == asker.Name) &&
		(q.Queue == "" || queues.Within(queue, q.Queue))
}

// Decisions returns the decisions that are wanted, those made last first.
func (r *Record) Decisions(q Query) []*Decision {
	all := r.all()
	slices.SortFunc(all, func(a, b *Decision) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.ID, a.ID)) })
	out := make([]*Decision, 0, min(len(all), max(q.Limit, 0)))
	for _, d := range all {
		if q.Wants(d.Asker, d.Queue) && d.chose(q.Victim) {
			if out = append(out, d); len(out) == q.Limit {
				break
			}
		}
	}
	return out
}

func (r *Record) all() []*Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.decisions))
}

// Last returns the last decision about a pod; nil if none is remembered.
func (r *Record) Last(pod types.UID) *Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decisions[r.latest[pod]]
}

// Choosing returns the last decision that chose a pod to go; nil if none is
// remembered.
func (r *Record) Choosing(pod types.UID) *Decision {
	for _, d := range r.Decisions(Query{}) {
		if d.VictimOf(pod) != nil {
			return d
		}
	}
	return nil
}

// Ended returns the holds that ended and are wanted, the last first.
func (r *Record) Ended(q Query) []EndedHold {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []EndedHold{}
	for _, h := range slices.Backward(r.ended) {
		if q.Wants(h.Asker, h.Queue) {
			if out = append(out, h); len(out) == q.Limit {
				break
			}
		}
	}
	return out
}

// EndedOf returns the hold of a pod that ended last; nil if none is remembered.
func (r *Record) EndedOf(pod types.UID) *EndedHold {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range slices.Backward(r.ended) {
		if h.Asker.UID == pod {
			return &h
		}
	}
	return nil
}
