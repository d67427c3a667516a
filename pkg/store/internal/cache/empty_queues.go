package cache

import (
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// EmptyQueues has the dynamic and draining queues that are empty, until their grace ends
// and they can be removed. Make one with NewEmptyQueues.
type EmptyQueues struct {
	grace time.Duration
	since map[queues.ID]time.Time
	next  time.Time // no grace ends before this time; not set while since is empty
}

// NewEmptyQueues returns an EmptyQueues that keeps each queue for a time.
func NewEmptyQueues(grace time.Duration) EmptyQueues {
	return EmptyQueues{grace: grace, since: map[queues.ID]time.Time{}}
}

// Note notes that a queue is empty. The grace of a queue that is noted already does not
// begin again. Root and configured queues are not noted.
func (e *EmptyQueues) Note(q *queues.Queue, now time.Time) {
	if !removable(q) {
		return
	}
	if _, noted := e.since[q.ID]; noted {
		return
	}
	if len(e.since) == 0 {
		e.next = now.Add(e.grace)
	}
	e.since[q.ID] = now
}

// Forget notes that a queue is in use or gone.
func (e *EmptyQueues) Forget(id queues.ID) { delete(e.since, id) }

// Due is when the first grace may end; zero for never. It may be early.
func (e *EmptyQueues) Due() time.Time {
	if len(e.since) == 0 {
		return time.Time{}
	}
	return e.next
}

// Remove removes the queues whose grace has ended from a tree, unless they are in use or
// configured again, and then the queues above them that exist only as their parents. It
// tells whether a grace may have ended, and returns the queues that are gone.
func (e *EmptyQueues) Remove(tree *queues.Draft, now time.Time) (gone []queues.ID, due bool) {
	if at := e.Due(); at.IsZero() || now.Before(at) {
		return nil, false
	}
	next := now.Add(e.grace)
	for _, id := range slices.Sorted(maps.Keys(e.since)) {
		if end := e.since[id].Add(e.grace); end.After(now) {
			if end.Before(next) {
				next = end
			}
			continue
		}
		gone = append(gone, e.remove(tree, id)...)
	}
	e.next = next
	return gone, true
}

// remove removes a queue and the empty parents that exist only for it.
func (e *EmptyQueues) remove(tree *queues.Draft, id queues.ID) (gone []queues.ID) {
	for id != queues.NoQueue {
		e.Forget(id)
		q := tree.Queue(id)
		if q == nil || !removable(q) || !tree.Remove(id) {
			break
		}
		gone = append(gone, id)
		id = q.Parent
	}
	return gone
}

// removable tells whether a queue may be removed once it is empty.
func removable(q *queues.Queue) bool {
	return !q.IsRoot() && (!q.Managed || q.State != queues.Active)
}
