package victims

// slab hands out lists from larger pieces of memory: a plan makes many small
// ones, which all end with it.
type slab[T any] struct{ free []T }

// slabSize is how many elements a piece has, unless one list needs more.
const slabSize = 512

// list returns a list of n zero values, at its full capacity.
func (s *slab[T]) list(n int) []T {
	if len(s.free) < n {
		s.free = make([]T, max(n, slabSize))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// one returns a zero value.
func (s *slab[T]) one() *T { return &s.list(1)[0] }
