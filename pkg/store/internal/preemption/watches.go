package preemption

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Watched is a queue or a node that a refusal named.
type Watched struct {
	queue queues.ID // queues.NoQueue for a node
	node  string
}

// WatchedQueue is a queue that may be watched.
func WatchedQueue(id queues.ID) Watched { return Watched{queue: id} }

// WatchedNode is a node that may be watched.
func WatchedNode(name string) Watched { return Watched{queue: queues.NoQueue, node: name} }

func (a Watched) compare(b Watched) int {
	return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.node, b.node))
}

// Watches has the queues and nodes that refused askers watch. A change there may help
// an asker before its retry interval ends (P2), and a node-bound one watches its node. Queues
// change with every pod that starts or ends, and thousands of pods may watch one, so the changes
// of AtMostEvery are taken together.
type Watches struct {
	of      map[types.UID][]Watched
	by      map[Watched]map[types.UID]struct{}
	changed map[Watched]struct{} // watched, and changed since
	// during has what changed while the current plan is made: its refusal may rest on the
	// old state. It is nil while no plan is made.
	during map[Watched]struct{}
	taken  time.Time // when changes were last taken
}

// NewWatches returns watches of nothing.
func NewWatches() Watches {
	return Watches{
		of: map[types.UID][]Watched{}, by: map[Watched]map[types.UID]struct{}{}, changed: map[Watched]struct{}{},
	}
}

// Set makes an asker watch these and nothing else.
func (w *Watches) Set(uid types.UID, what []Watched) {
	w.Remove(uid)
	if len(what) == 0 {
		return
	}
	for _, x := range what {
		if w.by[x] == nil {
			w.by[x] = map[types.UID]struct{}{}
		}
		w.by[x][uid] = struct{}{}
	}
	w.of[uid] = what
}

// Remove ends the watches of an asker.
func (w *Watches) Remove(uid types.UID) {
	for _, x := range w.of[uid] {
		delete(w.by[x], uid)
		if len(w.by[x]) == 0 {
			delete(w.by, x)
		}
	}
	delete(w.of, uid)
}

// Has tells whether an asker watches anything.
func (w *Watches) Has(uid types.UID) bool { return len(w.of[uid]) > 0 }

// Of returns what an asker watches. The caller must not change the slice.
func (w *Watches) Of(uid types.UID) []Watched { return w.of[uid] }

// All yields the askers that watch something, in no particular order.
func (w *Watches) All() iter.Seq[types.UID] { return maps.Keys(w.of) }

// Idle tells whether no change matters now.
func (w *Watches) Idle() bool { return len(w.by) == 0 && w.during == nil }

// Change notes that a queue or node changed for plans.
func (w *Watches) Change(what Watched) {
	if w.during != nil {
		w.during[what] = struct{}{}
	}
	if w.by[what] != nil {
		w.changed[what] = struct{}{}
	}
}

// PlanBegins notes that a plan is being made from now on.
func (w *Watches) PlanBegins() { w.during = map[Watched]struct{}{} }

// PlanEnds notes that no plan is being made.
func (w *Watches) PlanEnds() { w.during = nil }

// PlanRefused ends the refused plan of an asker. Whatever it watches that changed while the plan
// was made counts as changed now, because the plan has not seen the change.
func (w *Watches) PlanRefused(uid types.UID) {
	for _, x := range w.of[uid] {
		if _, changed := w.during[x]; changed {
			w.changed[x] = struct{}{}
		}
	}
	w.during = nil
}

// Due is when changes are taken next; zero for never.
func (w *Watches) Due() time.Time {
	if len(w.changed) == 0 {
		return time.Time{}
	}
	return w.taken.Add(AtMostEvery)
}

// Take returns the askers that watch what changed, if that is due, and forgets the
// changes. They keep their watches. The order is that of queues, nodes and UIDs.
func (w *Watches) Take(now time.Time) []types.UID {
	if due := w.Due(); due.IsZero() || due.After(now) {
		return nil
	}
	w.taken = now
	var out []types.UID
	listed := map[types.UID]struct{}{}
	for _, what := range slices.SortedFunc(maps.Keys(w.changed), Watched.compare) {
		for _, uid := range slices.Sorted(maps.Keys(w.by[what])) {
			if _, twice := listed[uid]; !twice {
				listed[uid] = struct{}{}
				out = append(out, uid)
			}
		}
	}
	clear(w.changed)
	return out
}

// Check verifies that the watches point both ways.
func (w *Watches) Check() error {
	points := 0
	for x, uids := range w.by {
		points += len(uids)
		for uid := range uids {
			if !slices.Contains(w.of[uid], x) {
				return fmt.Errorf("watches: pod %s does not watch %v", uid, x)
			}
		}
	}
	for uid, what := range w.of {
		distinct := len(slices.Compact(slices.SortedFunc(slices.Values(what), Watched.compare)))
		if points -= distinct; distinct == 0 {
			return fmt.Errorf("watches: pod %s watches nothing", uid)
		}
	}
	if points != 0 {
		return fmt.Errorf("watches: %d more are listed by what is watched", points)
	}
	return nil
}
