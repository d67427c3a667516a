// Package ranking is a binary heap of items that know their place, so that they can be
// moved and taken out.
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

// Heap keeps its first item at hand. Make one with New.
type Heap[T Item] struct{ in items[T] }

// items are what package heap works on.
type items[T Item] struct {
	all  []T
	less func(a, b T) bool
}

// New returns an empty heap ordered by less, which must be a strict total order.
func New[T Item](less func(a, b T) bool) Heap[T] { return Heap[T]{items[T]{less: less}} }

// Items returns the items, first one first, the others in no particular order.
// The caller must not change the slice.
func (r *Heap[T]) Items() []T { return r.in.all }

// First returns the best item and whether there is one.
func (r *Heap[T]) First() (first T, found bool) {
	if len(r.in.all) == 0 {
		return first, false
	}
	return r.in.all[0], true
}

// Update puts t where it belongs, or takes it out when it is not wanted.
func (r *Heap[T]) Update(t T, wanted bool) {
	at := *t.Place()
	switch {
	case wanted && at < 0:
		heap.Push(&r.in, t)
	case wanted:
		heap.Fix(&r.in, at)
	case at >= 0:
		heap.Remove(&r.in, at)
	}
}

// Len returns the number of items.
func (r *Heap[T]) Len() int { return r.in.Len() }

// Restore makes a heap of the items again after many of them changed.
func (r *Heap[T]) Restore() { heap.Init(&r.in) }

func (r *items[T]) Len() int { return len(r.all) }

func (r *items[T]) Less(i, j int) bool { return r.less(r.all[i], r.all[j]) }

func (r *items[T]) Swap(i, j int) {
	r.all[i], r.all[j] = r.all[j], r.all[i]
	*r.all[i].Place(), *r.all[j].Place() = i, j
}

func (r *items[T]) Push(t any) {
	*t.(T).Place() = len(r.all)
	r.all = append(r.all, t.(T))
}

func (r *items[T]) Pop() any {
	end := len(r.all) - 1
	t := r.all[end]
	clear(r.all[end:])
	r.all = r.all[:end]
	*t.Place() = Outside
	return t
}

// Check verifies the places and the heap property.
func (r *Heap[T]) Check() error {
	for i, t := range r.in.all {
		if *t.Place() != i {
			return fmt.Errorf("item %d believes to be at %d", i, *t.Place())
		}
		if i > 0 && r.in.less(t, r.in.all[(i-1)/2]) {
			return fmt.Errorf("item %d is before the one above it", i)
		}
	}
	return nil
}
