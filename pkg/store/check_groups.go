package store

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// checkGroups verifies that groups know the states of their members, and that members of
// a group that has not started are in no equivalence class.
func (s *core) checkGroups() []error {
	var errs []error
	members := map[*model.PodGroup]int{}
	touched := map[*model.PodGroup]bool{}
	for _, g := range s.model.Pending.PodGroups.Touched() {
		touched[g] = true
	}
	idle := s.model.Started && !s.model.Pending.Returning()
	for _, p := range s.model.Pods {
		g := p.PodGroup
		if g == nil {
			continue
		}
		members[g]++
		switch {
		case !g.Knows(p.UID, p, p.State, p.Asker.HoldsNode()):
			errs = append(errs, fmt.Errorf("PodGroup %s does not know its member %s", g.Name(), p.Name))
		case idle && !touched[g] && !g.Complete() && p.EquivalenceClass != nil:
			errs = append(errs, fmt.Errorf("PodGroup %s: it is not complete, and pod %s is in an equivalence class", g.Name(), p.Name))
		}
	}
	for g := range s.model.Pending.PodGroups.All() {
		if g.Len() != members[g] {
			errs = append(errs, fmt.Errorf("PodGroup %s has %d members, there are %d", g.Name(), g.Len(), members[g]))
		}
	}
	return append(errs, s.model.Pending.PodGroups.Check(idle))
}
