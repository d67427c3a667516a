package lifecycle

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// Configure is Store.Configure, under the lock.
func (x *Lifecycle) Configure(spec *config.Spec, now time.Time) {
	x.Cache.Spec = spec
	x.Pending.Demand.Changed()
	x.Cache.Tree().Apply(spec)
	x.ReapplyQuotas()
	x.rehome(now)
	x.IndexQueues()
	x.Reledger()
	for q := range x.Cache.Tree().All() {
		if q.Empty() {
			x.Cache.Empty.Note(q, now)
		}
		x.Pending.MoreRoom(q.ID)
	}
	for _, p := range x.SortedPods() {
		x.states.Arm(p, now) // the delay and the outcome of the laws may have changed
	}
	x.TouchAll()
	x.Pending.Groups.TouchBlocked()
	x.countTypes(cache.TypesOf(spec), now)
	if x.Started {
		x.PlaceAll(now)
	}
}

// UpsertNamespace is Store.UpsertNamespace, under the lock.
func (x *Lifecycle) UpsertNamespace(name string, annotations map[string]string, now time.Time) []error {
	changed, errs := x.Cache.Namespaces.Upsert(name, annotations)
	if !changed {
		return errs
	}
	x.ReapplyNamespace(name)
	x.countTypes(cache.TypesOfQuota(x.Cache.Namespaces[name].Quota), now)
	if x.Started {
		x.PlaceAll(now)
	}
	return errs
}

// DeleteNamespace is Store.DeleteNamespace, under the lock.
func (x *Lifecycle) DeleteNamespace(name string, now time.Time) {
	delete(x.Cache.Namespaces, name)
}

// rehome takes pending pods out of queues that became parents and take no applications
// any more, so that they are placed again. Running pods stay.
func (x *Lifecycle) rehome(now time.Time) {
	for _, p := range x.SortedPods() {
		if p.App == nil || p.State.HasNode() || x.Cache.Tree().Queue(p.App.Leaf).Leaf {
			continue
		}
		x.Unplace(p, now)
	}
}

// Sweep removes queues that were empty for the grace period.
func (x *Lifecycle) Sweep(now time.Time) {
	gone, due := x.Cache.Empty.Remove(x.Cache.Tree(), now)
	for _, id := range gone {
		x.Pending.RemoveQueue(id)
		x.Asking.Order.RemoveQueue(id)
	}
	if due && x.Started && len(x.Unplaced) > 0 {
		x.PlaceAll(now) // a queue that prevented a placement may be gone
	}
}
