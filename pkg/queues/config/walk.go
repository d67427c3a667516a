package config

import (
	"iter"
	"strings"
)

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

// Find returns the queue with the path, in any case; nil when there is none.
func (s *Spec) Find(path string) *Queue {
	names := strings.Split(strings.ToLower(path), ".")
	q := s.Root
	if names[0] != q.Name {
		return nil
	}
	for _, name := range names[1:] {
		if q = q.child(name); q == nil {
			return nil
		}
	}
	return q
}

func (q *Queue) child(name string) *Queue {
	for _, c := range q.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}
