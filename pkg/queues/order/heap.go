package order

import "container/heap"

// item is what a ranking holds: it knows its place, -1 when it is in none.
type item interface {
	place() *int
}

// ranking is a binary heap whose items can be moved and removed in place.
type ranking[T item] struct {
	items []T
	less  func(a, b T) bool
}

// Len, Less, Swap, Push and Pop serve container/heap.
func (r *ranking[T]) Len() int           { return len(r.items) }
func (r *ranking[T]) Less(i, j int) bool { return r.less(r.items[i], r.items[j]) }

// Swap exchanges two items and their places.
func (r *ranking[T]) Swap(i, j int) {
	r.items[i], r.items[j] = r.items[j], r.items[i]
	*r.items[i].place(), *r.items[j].place() = i, j
}

// Push appends an item; use update instead.
func (r *ranking[T]) Push(x any) {
	t := x.(T)
	*t.place() = len(r.items)
	r.items = append(r.items, t)
}

// Pop takes the last item off; use remove instead.
func (r *ranking[T]) Pop() any {
	last := len(r.items) - 1
	t := r.items[last]
	var zero T
	r.items[last] = zero
	r.items = r.items[:last]
	*t.place() = -1
	return t
}

// first returns the best item and whether there is one.
func (r *ranking[T]) first() (T, bool) {
	if len(r.items) == 0 {
		var zero T
		return zero, false
	}
	return r.items[0], true
}

// update puts t where it belongs, or takes it out when it is not wanted.
func (r *ranking[T]) update(t T, wanted bool) {
	at := *t.place()
	switch {
	case wanted && at < 0:
		heap.Push(r, t)
	case wanted:
		heap.Fix(r, at)
	case at >= 0:
		heap.Remove(r, at)
	}
}

// restore makes a heap of the items again after many of them changed.
func (r *ranking[T]) restore() { heap.Init(r) }
