package queues

import (
	"iter"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// chunkSize is the number of queues copied together when one of them changes.
const chunkSize = 64

// chunk holds the queues with consecutive IDs; nil where an ID is free.
type chunk struct {
	epoch  uint64
	queues [chunkSize]*Queue
}

// tree is the queues of a draft or of a snapshot.
type tree struct {
	chunks []*chunk
	visits *int // counts the calls of Queue; nil in a snapshot
}

// Snapshot is the whole tree at one moment. It is immutable and safe for any
// number of readers. The zero value has no root; take snapshots from a Draft.
type Snapshot struct {
	tree
	capacity resources.Vector
}

// Capacity is the sum of what the nodes can hold.
func (s *Snapshot) Capacity() resources.Vector { return s.capacity }

// ShownMax is the max of a queue as people are shown it: root's is the capacity.
func (s *Snapshot) ShownMax(q *Queue) resources.Limit {
	if q.IsRoot() {
		return resources.LimitFrom(s.capacity.Map())
	}
	return q.Max
}

// Len is the number of queues. It reads no queue.
func (s *Snapshot) Len() int {
	n := 0
	for _, c := range s.chunks {
		for _, q := range c.queues {
			if q != nil {
				n++
			}
		}
	}
	return n
}

// Queue returns the current value of the queue with the ID, nil when there is none. The
// caller must not change it.
func (t *tree) Queue(id ID) *Queue {
	if t.visits != nil {
		*t.visits++
	}
	c := int(id) / chunkSize
	if id < 0 || c >= len(t.chunks) {
		return nil
	}
	return t.chunks[c].queues[int(id)%chunkSize]
}

// Root returns the current root.
func (t *tree) Root() *Queue { return t.Queue(RootID) }

// Find returns the queue with the full path, lower case, and whether it exists.
func (t *tree) Find(path string) (*Queue, bool) {
	name, rest, more := strings.Cut(path, ".")
	q := t.Root()
	if q == nil || name != q.Name {
		return nil, false
	}
	for more {
		name, rest, more = strings.Cut(rest, ".")
		i, ok := findChild(t, q, name)
		if !ok {
			return nil, false
		}
		q = t.Queue(q.Children[i])
	}
	return q, true
}

// Ancestors yields the queue with the ID and then its ancestors up to the root.
func (t *tree) Ancestors(id ID) iter.Seq[*Queue] { return Ancestors(t, id) }

// Ancestors yields the queue with the ID and then its ancestors up to the root.
func Ancestors(v View, id ID) iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) {
		for q := v.Queue(id); q != nil; q = v.Queue(q.Parent) {
			if !yield(q) {
				return
			}
		}
	}
}

// All yields every queue, parents before children, children by name.
func (t *tree) All() iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) { t.walk(RootID, yield) }
}

func (t *tree) walk(id ID, yield func(*Queue) bool) bool {
	q := t.Queue(id)
	if q == nil || !yield(q) {
		return q == nil
	}
	for _, c := range q.Children {
		if !t.walk(c, yield) {
			return false
		}
	}
	return true
}
