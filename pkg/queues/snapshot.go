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

// Snapshot is the whole tree at one moment. It is immutable and safe for any
// number of readers. The zero value has no root; take snapshots from a Draft.
type Snapshot struct {
	generation uint64
	chunks     []*chunk
	capacity   resources.Vector
}

// Generation counts the published changes of any kind.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Capacity is the sum of what the nodes can hold.
func (s *Snapshot) Capacity() resources.Vector { return s.capacity }

// ShownMax is the max of a queue as people are shown it: root's is the capacity.
func (s *Snapshot) ShownMax(q *Queue) resources.Limit {
	if q.IsRoot() {
		return resources.LimitFrom(s.capacity.Map())
	}
	return q.Max
}

// Queue returns the queue with the ID, nil when there is none.
func (s *Snapshot) Queue(id ID) *Queue { return at(s.chunks, id) }

// Root returns the root queue.
func (s *Snapshot) Root() *Queue { return s.Queue(RootID) }

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

// Find returns the queue with the full path, lower case, and whether it exists.
func (s *Snapshot) Find(path string) (*Queue, bool) { return find(s, path) }

// Ancestors yields the queue with the ID and then its ancestors up to the root.
func (s *Snapshot) Ancestors(id ID) iter.Seq[*Queue] { return ancestors(s, id) }

// All yields every queue, parents before children, children by name.
func (s *Snapshot) All() iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) { walk(s, RootID, yield) }
}

func at(chunks []*chunk, id ID) *Queue {
	c := int(id) / chunkSize
	if id < 0 || c >= len(chunks) {
		return nil
	}
	return chunks[c].queues[int(id)%chunkSize]
}

func find(v View, path string) (*Queue, bool) {
	name, rest, more := strings.Cut(path, ".")
	q := v.Queue(RootID)
	if q == nil || name != q.Name {
		return nil, false
	}
	for more {
		name, rest, more = strings.Cut(rest, ".")
		i, ok := findChild(v, q, name)
		if !ok {
			return nil, false
		}
		q = v.Queue(q.Children[i])
	}
	return q, true
}

func ancestors(v View, id ID) iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) {
		for q := v.Queue(id); q != nil; q = v.Queue(q.Parent) {
			if !yield(q) {
				return
			}
		}
	}
}

func walk(v View, id ID, yield func(*Queue) bool) bool {
	q := v.Queue(id)
	if q == nil || !yield(q) {
		return q == nil
	}
	for _, c := range q.Children {
		if !walk(v, c, yield) {
			return false
		}
	}
	return true
}
