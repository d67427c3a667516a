package search

// arena is an arena for lists. A plan makes many small ones, which are all freed with it.
type arena[T any] struct{ free []T }

// arenaSize is the number of elements of a piece, unless one list needs more.
const arenaSize = 512

// list returns a list of n zero values with capacity n.
func (s *arena[T]) list(n int) []T {
	if len(s.free) < n {
		s.free = make([]T, max(n, arenaSize))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// one returns a zero value.
func (s *arena[T]) one() *T { return &s.list(1)[0] }
