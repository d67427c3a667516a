package store

// marks is a set of things in no particular order: each knows its own place, so
// that adding and removing cost the same however many there are.
type marks[T interface{ mark() *int }] struct{ list []T }

// add adds a thing, unless it is there.
func (m *marks[T]) add(x T) {
	if at := x.mark(); *at == 0 {
		m.list = append(m.list, x)
		*at = len(m.list)
	}
}

// remove takes a thing out, if it is there.
func (m *marks[T]) remove(x T) {
	at := x.mark()
	if *at == 0 {
		return
	}
	last := len(m.list) - 1
	m.list[*at-1] = m.list[last]
	*m.list[*at-1].mark() = *at
	*at = 0
	m.shrink(last)
}

// take takes out at most n things.
func (m *marks[T]) take(n int, each func(T)) (taken int) {
	first := max(len(m.list)-n, 0)
	for _, x := range m.list[first:] {
		*x.mark() = 0
		each(x)
	}
	taken = len(m.list) - first
	m.shrink(first)
	return taken
}

func (m *marks[T]) shrink(n int) {
	clear(m.list[n:])
	m.list = m.list[:n]
}

// takeFirst takes at most n entries from the front of a list.
func takeFirst[T any](list *[]T, n int) []T {
	n = min(n, len(*list))
	taken := (*list)[:n:n]
	if *list = (*list)[n:]; len(*list) == 0 {
		*list = nil
	}
	return taken
}
