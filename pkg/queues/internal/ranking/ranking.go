// Package ranking is a binary heap whose items know their place, so that they
// can be moved and taken out.
package ranking

import (
	"container/heap"
	"fmt"
)

// Item is what a Heap holds: Place points to where it notes its place in the
// one heap it can be in. An item outside has place -1.
type Item interface {
	Place() *int
}

// Outside is the place of an item that is in no heap.
const Outside = -1

// Heap keeps its first item, by Less, at hand. Set Less before use.
type Heap[T Item] struct {
	items []T
	less  func(a, b T) bool
}

// New returns an empty heap ordered by less, which must be a strict total order.
func New[T Item](less func(a, b T) bool) Heap[T] { return Heap[T]{less: less} }

// Items returns the items, first one first, the others in no particular order.
// The caller must not change the slice.
func (r *Heap[T]) Items() []T { return r.items }

// Len is the number of items.
func (r *Heap[T]) Len() int { return len(r.items) }

// Less compares the items at two places; for container/heap.
func (r *Heap[T]) Less(i, j int) bool { return r.less(r.items[i], r.items[j]) }

// Swap exchanges two items and their places; for container/heap.
func (r *Heap[T]) Swap(i, j int) {
	r.items[i], r.items[j] = r.items[j], r.items[i]
	*r.items[i].Place(), *r.items[j].Place() = i, j
}

// Push appends an item; for container/heap, use Update instead.
func (r *Heap[T]) Push(x any) {
	t := x.(T)
	*t.Place() = len(r.items)
	r.items = append(r.items, t)
}

// Pop takes the last item off; for container/heap, use Update instead.
func (r *Heap[T]) Pop() any {
	last := len(r.items) - 1
	t := r.items[last]
	var zero T
	r.items[last] = zero
	r.items = r.items[:last]
	*t.Place() = Outside
	return t
}

// First returns the best item and whether there is one.
func (r *Heap[T]) First() (T, bool) {
	if len(r.items) == 0 {
		var zero T
		return zero, false
	}
	return r.items[0], true
}

// Update puts t where it belongs, or takes it out when it is not wanted.
func (r *Heap[T]) Update(t T, wanted bool) {
	at := *t.Place()
	switch {
	case wanted && at < 0:
		heap.Push(r, t)
	case wanted:
		heap.Fix(r, at)
	case at >= 0:
		heap.Remove(r, at)
	}
}

// Restore makes a heap of the items again after many of them changed.
func (r *Heap[T]) Restore() { heap.Init(r) }

// Check verifies the places and the heap property.
func (r *Heap[T]) Check() error {
	for i, t := range r.items {
		if *t.Place() != i {
			return fmt.Errorf("item %d believes to be at %d", i, *t.Place())
		}
		if i > 0 && r.less(t, r.items[(i-1)/2]) {
			return fmt.Errorf("item %d is before the one above it", i)
		}
	}
	return nil
}
