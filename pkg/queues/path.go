package queues

import "strings"

// deepest returns the deepest existing queue on the way to path and the names
// of the segments below it that are missing.
func (d *Draft) deepest(path string) (ID, []string) {
	segments := strings.Split(path, ".")
	q := d.Root()
	for i, name := range segments[1:] {
		at, ok := findChild(d, q, name)
		if !ok {
			return q.ID, segments[i+1:]
		}
		q = d.Queue(q.Children[at])
	}
	return q.ID, nil
}

// Within reports whether a path is that of an ancestor, or of a queue below it.
func Within(path, ancestor string) bool {
	return path == ancestor || strings.HasPrefix(path, ancestor+".")
}
