// Package ranking is a binary heap of items that know their place, so that they can be
// moved and taken out.
package ranking

import "fmt"

// Item is what a Heap holds: Place points to where it notes its place in the
// one heap it can be in. An item outside has place -1.
type Item interface {
	Place() *int
}

// Outside is the place of an item that is in no heap.
const Outside = -1

// Heap keeps its first item at hand. Make one with New. Items are not swapped: each level
// moves one item into the free place and writes its new place, because each such write may
// miss the CPU's caches.
type Heap[T Item] struct {
	items []T
	less  func(a, b T) bool
}

// New returns an empty heap ordered by less, which must be a strict total order.
func New[T Item](less func(a, b T) bool) Heap[T] { return Heap[T]{less: less} }

// Items returns the items, first one first, the others in no particular order.
// The caller must not change the slice.
func (r *Heap[T]) Items() []T { return r.items }

// Len returns the number of items.
func (r *Heap[T]) Len() int { return len(r.items) }

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
		r.items = append(r.items, t)
		r.rise(len(r.items)-1, t)
	case wanted:
		r.settle(at, t)
	case at >= 0:
		r.remove(at)
	}
}

// remove takes out the item at a place; the last one takes it, or goes where it
// belongs from there.
func (r *Heap[T]) remove(at int) {
	var none T
	end := len(r.items) - 1
	last := r.items[end]
	*r.items[at].Place() = Outside
	r.items[end] = none
	if r.items = r.items[:end]; at < end {
		r.settle(at, last)
	}
}

// settle puts t where it belongs from a place that is free for it.
func (r *Heap[T]) settle(at int, t T) {
	if at > 0 && r.less(t, r.items[(at-1)/2]) {
		r.rise(at, t)
		return
	}
	r.sink(at, t)
}

// rise has the items above a free place move down, as long as t is before them, and
// puts t where they were.
func (r *Heap[T]) rise(at int, t T) {
	for at > 0 {
		above := (at - 1) / 2
		if !r.less(t, r.items[above]) {
			break
		}
		r.put(at, r.items[above])
		at = above
	}
	r.put(at, t)
}

// sink has the better ones of the items below a free place move up, as long as they
// are before t, and puts t where they were.
func (r *Heap[T]) sink(at int, t T) {
	for next := 2*at + 1; next < len(r.items); next = 2*at + 1 {
		if next+1 < len(r.items) && r.less(r.items[next+1], r.items[next]) {
			next++
		}
		if !r.less(r.items[next], t) {
			break
		}
		r.put(at, r.items[next])
		at = next
	}
	r.put(at, t)
}

func (r *Heap[T]) put(at int, t T) {
	r.items[at] = t
	*t.Place() = at
}

// Restore makes a heap of the items again after many of them changed.
func (r *Heap[T]) Restore() {
	for at := len(r.items)/2 - 1; at >= 0; at-- {
		r.sink(at, r.items[at])
	}
}

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
