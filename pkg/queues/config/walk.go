package config

import "iter"

// All yields the queue and every queue below it, parents before children,
// siblings in order of their names.
func (q *Queue) All() iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) { q.walk(yield) }
}

func (q *Queue) walk(yield func(*Queue) bool) bool {
	if !yield(q) {
		return false
	}
	for _, child := range q.Children {
		if !child.walk(yield) {
			return false
		}
	}
	return true
}
