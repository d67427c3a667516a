package store

import (
	"fmt"
	"maps"
)

// checkRegister verifies that readers have seen the current state of everything or have
// it marked as changed.
func (s *Store) checkRegister() []error {
	nodes := func(yield func(string, *seenNode) bool) {
		for n := range s.cache.Nodes.All() {
			seen := s.register.seen[n.Name()]
			if seen == nil || seen.Node != n {
				seen = &seenNode{Node: n}
			}
			if n.Known() && !yield(n.Name(), seen) {
				return
			}
		}
	}
	var errs []error
	add := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	add("pods", s.register.pods.Check(maps.All(s.pods), s.recordOf))
	add("applications", s.register.apps.Check(s.apps.All(), s.recordOfApp))
	add("nodes", s.register.nodes.Check(nodes, recordOfNode))
	add("finished applications", s.register.finished.Check())
	add("events", s.events.Check())
	add("reports", s.reports.Check())
	return errs
}
