package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// Configure replaces the queue configuration. Running pods are not touched; pods without
// a queue are placed again.
func (s *Store) Configure(spec *config.Spec, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.cache.Spec = spec
	s.pending.Demand.Changed()
	s.cache.Tree().Apply(spec)
	s.reapplyQuotas()
	s.rehome(now)
	s.indexQueues()
	s.reledger()
	for q := range s.cache.Tree().All() {
		if q.Empty() {
			s.cache.Empty.Note(q, now)
		}
		s.pending.MoreRoom(q.ID)
	}
	for _, p := range s.sortedPods() {
		s.arm(p, now) // the delay and the outcome of the laws may have changed
	}
	s.touchAll()
	s.pending.Groups.TouchBlocked()
	s.countTypes(cache.TypesOf(spec), now)
	if s.started {
		s.placeAll(now)
	}
}

// Spec returns the current configuration.
func (s *Store) Spec() *config.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache.Spec
}

// UpsertNamespace sets the annotations of a namespace. It returns an error for each
// annotation that is invalid and counts as absent.
func (s *Store) UpsertNamespace(name string, annotations map[string]string, now time.Time) []error {
	s.mu.Lock()
	defer s.unlock(now)
	changed, errs := s.cache.Namespaces.Upsert(name, annotations)
	if !changed {
		return errs
	}
	s.reapplyNamespace(name)
	s.countTypes(cache.TypesOfQuota(s.cache.Namespaces[name].Quota), now)
	if s.started {
		s.placeAll(now)
	}
	return errs
}

// DeleteNamespace handles the deletion of a namespace.
func (s *Store) DeleteNamespace(name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	delete(s.cache.Namespaces, name)
}

// reapplyNamespace applies the current annotations of a namespace to the dynamic leaves
// that have its quota or its applications.
func (s *Store) reapplyNamespace(name string) {
	for _, leaf := range s.apps.Leaves() {
		q := s.cache.Tree().Queue(leaf)
		if q.Managed || (q.QuotaNamespace != "" && q.QuotaNamespace != name) || !s.apps.AnyOf(leaf, name) {
			continue
		}
		s.cache.Tree().SetNamespaceQuota(leaf, name, s.cache.Namespaces[name].Quota)
		s.pending.Demand.Changed()
		s.indexPath(leaf)
		s.pending.MoreRoom(leaf)
	}
}

// reapplyQuotas applies changed templates to dynamic leaves with the quota of a
// namespace.
func (s *Store) reapplyQuotas() {
	for _, leaf := range s.apps.Leaves() {
		if ns := s.cache.Tree().Queue(leaf).QuotaNamespace; ns != "" {
			s.cache.Tree().SetNamespaceQuota(leaf, ns, s.cache.Namespaces[ns].Quota)
		}
	}
}

// rehome takes pending pods out of queues that became parents and take no applications
// any more, so that they are placed again. Running pods stay.
func (s *Store) rehome(now time.Time) {
	for _, p := range s.sortedPods() {
		if p.app == nil || p.state.HasNode() || s.cache.Tree().Queue(p.app.Leaf).Leaf {
			continue
		}
		s.unplace(p, now)
	}
}

func (s *Store) sortedPods() []*pod {
	return slices.SortedFunc(maps.Values(s.pods), func(a, b *pod) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
}

// reledger rebuilds the usage of users and groups, because a configuration can change
// which queues limit which owners.
func (s *Store) reledger() {
	s.cache.Books.Rebuild(s.apps.Records())
	for _, a := range s.apps.All() {
		s.history.apps.Add(a)
		s.history.rename(a, s.cache.Path(a.Leaf))
		s.pending.Order.SetClass(a.ordered, a.class(s.cache.Tree()))
	}
}

// indexQueues gives the orders all queues with changed settings.
func (s *Store) indexQueues() {
	for q := range s.cache.Tree().All() {
		s.indexQueue(q)
	}
}

// indexPath is indexQueues for the queues from root to a leaf.
func (s *Store) indexPath(leaf queues.ID) {
	path := slices.Collect(s.cache.Tree().Ancestors(leaf))
	slices.Reverse(path)
	for _, q := range path {
		s.indexQueue(q)
	}
}

// sweep removes queues that were empty for the grace period.
func (s *Store) sweep(now time.Time) {
	gone, due := s.cache.Empty.Remove(s.cache.Tree(), now)
	for _, id := range gone {
		s.pending.RemoveQueue(id)
		s.asking.Order.RemoveQueue(id)
	}
	if due && s.started && len(s.unplaced) > 0 {
		s.placeAll(now) // a queue that prevented a placement may be gone
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
