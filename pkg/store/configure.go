package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// namespace is the state of a namespace.
type namespace struct {
	annotations map[string]string
	quota       *queues.NamespaceQuota // nil when its annotations set none
}

// Configure replaces the queue configuration. Running pods are not touched; pods without
// a queue are placed again.
func (s *Store) Configure(spec *config.Spec, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.spec = spec
	s.demand.stale = true
	s.draft.Apply(spec)
	s.reapplyQuotas()
	s.rehome(now)
	s.indexQueues()
	s.reledger()
	for q := range s.draft.All() {
		if !q.Managed || q.State == queues.Draining {
			if q.Empty() {
				s.noteEmpty(q.ID, now)
			}
		}
		s.reconsider[q.ID] = struct{}{}
	}
	for _, p := range s.sortedPods() {
		s.arm(p, now) // the delay and the outcome of the laws may have changed
	}
	s.touchAll()
	s.touchAllGroups()
	s.countTypes(typesOf(spec), now)
	if s.started {
		s.placeAll(now)
	}
}

// Spec returns the current configuration.
func (s *Store) Spec() *config.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec
}

// UpsertNamespace sets the annotations of a namespace. It returns an error for each
// annotation that is invalid and counts as absent.
func (s *Store) UpsertNamespace(name string, annotations map[string]string, now time.Time) []error {
	quota, errs := placement.NamespaceQuota(placement.Namespace{Name: name, Annotations: annotations})
	ns := namespace{annotations: annotations}
	if quota.Set || quota.MaxApplications > 0 {
		ns.quota = &queues.NamespaceQuota{
			Guaranteed: quota.Guaranteed, Max: quota.Max, MaxApplications: quota.MaxApplications,
		}
	}
	s.mu.Lock()
	defer s.unlock(now)
	old, known := s.namespaces[name]
	s.namespaces[name] = ns
	if known && maps.Equal(old.annotations, annotations) {
		return errs
	}
	s.reapplyNamespace(name)
	s.countTypes(typesOfQuota(ns.quota), now)
	if s.started {
		s.placeAll(now)
	}
	return errs
}

// DeleteNamespace handles the deletion of a namespace.
func (s *Store) DeleteNamespace(name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	delete(s.namespaces, name)
}

// reapplyNamespace applies the current annotations of a namespace to the dynamic leaves
// that have its quota or its applications.
func (s *Store) reapplyNamespace(name string) {
	for _, leaf := range slices.Sorted(maps.Keys(s.leaves)) {
		q := s.draft.Queue(leaf)
		if q.Managed || (q.QuotaNamespace != "" && q.QuotaNamespace != name) || !s.hasAppOf(leaf, name) {
			continue
		}
		s.draft.SetNamespaceQuota(leaf, name, s.namespaces[name].quota)
		s.demand.stale = true
		s.indexPath(leaf)
		s.reconsider[leaf] = struct{}{}
	}
}

func (s *Store) hasAppOf(leaf queues.ID, namespace string) bool {
	for name := range s.leaves[leaf] {
		if name.namespace == namespace {
			return true
		}
	}
	return false
}

// reapplyQuotas applies changed templates to dynamic leaves with the quota of a
// namespace.
func (s *Store) reapplyQuotas() {
	for _, leaf := range slices.Sorted(maps.Keys(s.leaves)) {
		if ns := s.draft.Queue(leaf).QuotaNamespace; ns != "" {
			s.draft.SetNamespaceQuota(leaf, ns, s.namespaces[ns].quota)
		}
	}
}

// rehome takes pending pods out of queues that became parents and take no applications
// any more, so that they are placed again. Running pods stay.
func (s *Store) rehome(now time.Time) {
	for _, p := range s.sortedPods() {
		if p.app == nil || p.state.allocated() || s.draft.Queue(p.app.leaf).Leaf {
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
	s.ledger = queues.NewLedger()
	for _, apps := range s.leaves {
		for _, a := range apps {
			a.owner.Group = queues.GroupFor(s.draft, a.leaf, a.groups)
			s.register.apps.add(a)
			s.rename(a)
			s.index.SetClass(a.ordered, s.class(a))
			s.ledger.Update(s.draft, a.leaf, a.owner, func(u *queues.OwnerUsage) { addApp(u, a) })
		}
	}
}

func addApp(u *queues.OwnerUsage, a *app) {
	u.Allocated = u.Allocated.Add(a.used.Allocated)
	u.Admitted = u.Admitted.Add(a.used.Admitted)
	if a.counted {
		u.Running++
	}
}

// indexQueues gives the orders all queues with changed settings.
func (s *Store) indexQueues() {
	for q := range s.draft.All() {
		s.indexQueue(q)
	}
}

// indexPath is indexQueues for the queues from root to a leaf.
func (s *Store) indexPath(leaf queues.ID) {
	path := slices.Collect(s.draft.Ancestors(leaf))
	slices.Reverse(path)
	for _, q := range path {
		s.indexQueue(q)
	}
}

// noteEmpty notes the time from which a removable queue is empty.
func (s *Store) noteEmpty(id queues.ID, now time.Time) {
	q := s.draft.Queue(id)
	if q.IsRoot() || (q.Managed && q.State == queues.Active) {
		return
	}
	if _, noted := s.emptied[id]; noted {
		return
	}
	if at := now.Add(s.options.QueueGrace); len(s.emptied) == 0 || at.Before(s.sweepAt) {
		s.sweepAt = at
	}
	s.emptied[id] = now
}

// sweep removes queues that were empty for the grace period.
func (s *Store) sweep(now time.Time) {
	if len(s.emptied) == 0 || now.Before(s.sweepAt) {
		return
	}
	next := now.Add(s.options.QueueGrace)
	for _, id := range slices.Sorted(maps.Keys(s.emptied)) {
		if due := s.emptied[id].Add(s.options.QueueGrace); due.After(now) {
			next = earliest(next, due)
			continue
		}
		s.removeEmpty(id)
	}
	s.sweepAt = next
	if s.started && len(s.unplaced) > 0 {
		s.placeAll(now) // a queue that prevented a placement may be gone
	}
}

// removeEmpty removes a queue, unless it is in use or configured again, and then the
// queues above it that exist only as its parents.
func (s *Store) removeEmpty(id queues.ID) {
	for id != queues.NoQueue {
		delete(s.emptied, id)
		q := s.draft.Queue(id)
		if q == nil || q.IsRoot() || (q.Managed && q.State == queues.Active) || s.draft.Remove(id) != nil {
			return
		}
		s.index.RemoveQueue(id)
		s.lane.index.RemoveQueue(id)
		s.asking.order.index.RemoveQueue(id)
		id = q.Parent
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
