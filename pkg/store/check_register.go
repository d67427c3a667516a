package store

import (
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

// checkRegister verifies that readers have seen the current state of everything or have
// it marked as changed.
func (s *Store) checkRegister() []error {
	nodes := func(yield func(string, *seenNode) bool) {
		for n := range s.cache.Nodes.All() {
			seen := s.history.seen[n.Name()]
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
	add("pods", s.history.pods.Check(maps.All(s.pods), s.recordOf))
	add("applications", s.history.apps.Check(s.apps.All(), s.recordOfApp))
	add("nodes", s.history.nodes.Check(nodes, recordOfNode))
	add("finished applications", s.history.finished.Check())
	tallies := make([]history.Tally, 0, len(s.pods))
	for _, p := range s.pods {
		tallies = append(tallies, tallyOf(p))
	}
	add("waiting pods", s.history.waits.Check(slices.Values(tallies), s.apps.Leaves()))
	add("events", s.history.events.Check())
	add("reports", s.history.reports.Check())
	return errs
}
