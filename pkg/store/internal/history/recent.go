package history

import "fmt"

// Recent is the last few things that were added. Make one with NewRecent.
type Recent[T any] struct {
	limit int
	ring  []T
	next  int // index of the oldest once the ring is full
	// listed is a copy, oldest first; nil if it is out of date.
	listed []T
}

// NewRecent returns a Recent of at most limit things; limit must be positive.
func NewRecent[T any](limit int) Recent[T] { return Recent[T]{limit: limit} }

// Add adds a thing. It takes the place of the oldest one if there is no room.
func (r *Recent[T]) Add(x T) {
	if r.listed = nil; len(r.ring) < r.limit {
		r.ring = append(r.ring, x)
		return
	}
	r.ring[r.next] = x
	r.next = (r.next + 1) % r.limit
}

// List returns the things, oldest first. The list must not be changed.
func (r *Recent[T]) List() []T {
	if r.listed == nil {
		r.listed = append(append(make([]T, 0, len(r.ring)), r.ring[r.next:]...), r.ring[:r.next]...)
	}
	return r.listed
}

// Check verifies that the ring is within its limit.
func (r *Recent[T]) Check() error {
	if len(r.ring) > r.limit || r.next != 0 && (r.next >= r.limit || len(r.ring) < r.limit) {
		return fmt.Errorf("%d recent things of at most %d, the oldest at %d", len(r.ring), r.limit, r.next)
	}
	return nil
}
