package store

import (
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// checkHistory verifies that readers have seen the current state of everything or have
// it marked as changed.
func (s *core) checkHistory() []error {
	nodes := func(yield func(string, *model.SeenNode) bool) {
		for n := range s.model.Cache.Nodes.All() {
			seen := s.model.History.Seen[n.Name()]
			if seen == nil || seen.Node != n {
				seen = &model.SeenNode{Node: n}
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
	add("pods", s.model.History.Pods.Check(maps.All(s.model.Pods), s.model.RecordOf))
	add("applications", s.model.History.Apps.Check(s.model.Apps.All(), s.model.RecordOfApp))
	add("nodes", s.model.History.Nodes.Check(nodes, model.RecordOfNode))
	tallies := make([]history.Tally, 0, len(s.model.Pods))
	for _, p := range s.model.Pods {
		tallies = append(tallies, model.TallyOf(p))
	}
	add("waiting pods", s.model.History.Waits.Check(slices.Values(tallies), s.model.Apps.Leaves()))
	for _, r := range slices.Concat(s.model.History.Readers[:]...) {
		add("events", r.Check())
	}
	add("reports", s.model.History.Reports.Check())
	return errs
}
