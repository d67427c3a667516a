package store

import "fmt"

// checkApps verifies that an application has one record in a queue, and that its new pods
// join that record.
func (s *Store) checkApps() []error {
	var errs []error
	records := map[AppName]*app{}
	for _, p := range s.sortedPods() {
		if p.app == nil {
			continue
		}
		a := p.app
		key := AppName{Namespace: a.name.namespace, ID: a.name.id, Queue: s.path(a.Leaf)}
		if other, known := records[key]; known && other != a {
			errs = append(errs, fmt.Errorf("application %s/%s: two records in queue %s", key.Namespace, key.ID, key.Queue))
		}
		records[key] = a
	}
	return errs
}
