package store

import "fmt"

// checkGroups verifies that groups know the states of their members, and that members of
// a group that has not started are in no equivalence class.
func (s *Store) checkGroups() []error {
	var errs []error
	members := map[*podGroup]int{}
	touched := map[*podGroup]bool{}
	for _, g := range s.pending.Groups.Touched() {
		touched[g] = true
	}
	settled := s.started && !s.pending.Returning()
	for _, p := range s.pods {
		g := p.mates
		if g == nil {
			continue
		}
		members[g]++
		switch {
		case !g.Knows(p.UID, p, p.state, p.asks.Holds()):
			errs = append(errs, fmt.Errorf("PodGroup %s does not know its member %s", g.Name(), p.Name))
		case settled && !touched[g] && !g.Complete() && p.equivalenceClass != nil:
			errs = append(errs, fmt.Errorf("PodGroup %s: it is not complete, and pod %s is in an equivalence class", g.Name(), p.Name))
		}
	}
	for g := range s.pending.Groups.All() {
		if g.Len() != members[g] {
			errs = append(errs, fmt.Errorf("PodGroup %s has %d members, there are %d", g.Name(), g.Len(), members[g]))
		}
	}
	return append(errs, s.pending.Groups.Check(settled))
}
