package lifecycle

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Configure applies a configuration to the queues and places pods without a queue again.
func (x *Lifecycle) Configure(spec *config.Spec, now time.Time) {
	x.Cache.Spec = spec
	x.Pending.Demand.Changed()
	x.Cache.Tree().Apply(spec)
	x.applyQuotas()
	x.unplaceFromParents(now)
	x.IndexQueues()
	x.rebuildOwners()
	for q := range x.Cache.Tree().All() {
		if q.Empty() {
			x.Cache.Empty.Note(q, now)
		}
		x.settingsChanged(q.ID)
	}
	for _, p := range x.SortedPods() {
		x.states.Arm(p, now) // the delay and the outcome of the laws may have changed
	}
	x.TouchAll()
	x.Pending.Groups.TouchBlocked()
	x.Preemption.NodeBound.NoteAll()
	x.countTypes(cache.TypesOf(spec), now)
	if x.Started {
		x.PlaceAll(now)
	}
}

// applyQuotas applies the quotas of namespaces to dynamic leaves. It is called when leaves
// went, and when namespaces or the configuration changed.
func (x *Lifecycle) applyQuotas() {
	x.quotasChanged(x.Cache.Tree().ApplyQuotas(x.Cache.Namespaces.Quota))
}

// quotasChanged notes that leaves have another quota.
func (x *Lifecycle) quotasChanged(leaves []queues.ID) {
	for _, leaf := range leaves {
		x.Pending.Demand.Changed()
		x.IndexPath(leaf)
		x.settingsChanged(leaf)
	}
}

// settingsChanged notes that a queue has other settings: it may have more room, and plans that
// named it or a queue above it may have another result.
func (x *Lifecycle) settingsChanged(id queues.ID) {
	x.Pending.MoreRoom(id)
	for q := range x.Cache.Tree().Ancestors(id) {
		x.Preemption.Watches.Change(preemption.WatchedQueue(q.ID))
	}
}

// rebuildOwners rebuilds the usage of users and groups, because a configuration can change
// which queues limit which owners.
func (x *Lifecycle) rebuildOwners() {
	x.Cache.Books.Rebuild(x.Apps.Records())
	for _, a := range x.Apps.All() {
		x.History.Apps.Add(a)
		x.History.Rename(a, x.Cache.Path(a.Leaf))
		x.Pending.Order.SetClass(a.Ordered, a.Class(x.Cache.Tree()))
	}
}

// UpsertNamespace takes over the quota and the other annotations of a namespace.
func (x *Lifecycle) UpsertNamespace(name string, annotations map[string]string, now time.Time) []error {
	changed, errs := x.Cache.Namespaces.Upsert(name, annotations)
	if !changed {
		return errs
	}
	x.applyQuotas()
	x.countTypes(cache.TypesOfQuota(x.Cache.Namespaces[name].Quota), now)
	if x.Started {
		x.PlaceAll(now)
	}
	return errs
}

// DeleteNamespace forgets a namespace and takes its quota from the dynamic leaves.
func (x *Lifecycle) DeleteNamespace(name string) {
	delete(x.Cache.Namespaces, name)
	x.applyQuotas()
}

// unplaceFromParents takes pending pods out of queues that became parents and take no
// applications any more, so that they are placed again. Running pods stay.
func (x *Lifecycle) unplaceFromParents(now time.Time) {
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
		x.PreemptionQueue.Order.RemoveQueue(id)
	}
	if len(gone) > 0 {
		x.applyQuotas()
	}
	if due && x.Started && len(x.Unplaced) > 0 {
		x.PlaceAll(now) // a queue that prevented a placement may be gone
	}
}
