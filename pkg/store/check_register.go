package store

import (
	"fmt"
	"reflect"
)

// checkRegister verifies that readers have seen the current state of everything or have
// it marked as changed.
func (s *Store) checkRegister() []error {
	var errs []error
	for _, p := range s.sortedPods() {
		if p.marked == 0 && (p.shown == nil || !reflect.DeepEqual(p.shown, s.recordOf(p))) {
			errs = append(errs, fmt.Errorf("pod %s/%s: readers were not told that it is different", p.Namespace, p.Name))
		}
	}
	for name, n := range s.nodes {
		if n.known && n.marked == 0 && !n.shown {
			errs = append(errs, fmt.Errorf("node %s: readers were not told of it", name))
		}
	}
	return append(append(errs, s.checkAppsShown()...), checkMarks("pods", s.register.pods.list), checkMarks("applications", s.register.apps.list),
		checkMarks("nodes", s.register.nodes.list))
}

func (s *Store) checkAppsShown() []error {
	var errs []error
	for _, apps := range s.leaves {
		for _, a := range apps {
			if a.marked == 0 && !a.shown {
				errs = append(errs, fmt.Errorf("application %s: readers were not told of it", a.name))
			}
		}
	}
	return errs
}

func checkMarks[T interface{ mark() *int }](what string, list []T) error {
	for i, x := range list {
		if *x.mark() != i+1 {
			return fmt.Errorf("register: %s: entry %d thinks it is %d", what, i, *x.mark()-1)
		}
	}
	return nil
}
