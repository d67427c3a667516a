package store

// marks is an unordered set. Each element stores its own index, so that adding and
// removing are O(1).
type marks[T interface{ mark() *int }] struct{ list []T }

// add adds an element, unless it is in the set.
func (m *marks[T]) add(x T) {
	if at := x.mark(); *at == 0 {
		m.list = append(m.list, x)
		*at = len(m.list)
	}
}

// remove removes an element, if it is in the set.
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

// take removes at most n elements.
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
