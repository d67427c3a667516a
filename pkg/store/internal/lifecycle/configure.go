package lifecycle

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Configure applies a configuration to the queues and places pods without a queue again.
func (x *Lifecycle) Configure(spec *config.Spec, now time.Time) {
	x.m.Cache.Spec = spec
	x.m.Pending.Demand.Changed()
	x.m.Cache.Tree().Apply(spec)
	x.applyQuotas()
	x.unplaceFromParents(now)
	x.m.IndexQueues()
	x.rebuildOwners()
	for q := range x.m.Cache.Tree().All() {
		if q.Empty() {
			x.m.Cache.Empty.Note(q, now)
		}
		x.settingsChanged(q.ID)
	}
	for _, p := range x.m.Pods {
		x.states.Arm(p, now) // the delay and the outcome of the laws may have changed
	}
	x.m.TouchAll()
	x.m.Pending.PodGroups.TouchBlocked()
	x.m.Preemption.NodeBound.NoteAll()
	x.countTypes(cache.TypesOf(spec), now)
	if x.m.Started {
		x.PlaceAll(now)
	}
}

// applyQuotas applies the quotas of namespaces to dynamic leaves. It is called when leaves
// went, and when namespaces or the configuration changed.
func (x *Lifecycle) applyQuotas() {
	x.quotasChanged(x.m.Cache.Tree().ApplyQuotas(x.m.Cache.Namespaces.Quota))
}

// settingsChanged notes that a queue has other settings: it may have more room, and plans that
// named it or a queue above it may have another result.
func (x *Lifecycle) settingsChanged(id queues.ID) {
	x.m.Pending.MoreRoom(id)
	for q := range x.m.Cache.Tree().Ancestors(id) {
		x.m.Preemption.Watches.Change(preemption.WatchedQueue(q.ID))
	}
}

// rebuildOwners rebuilds the usage of users and groups, because a configuration can change
// which queues limit which owners.
func (x *Lifecycle) rebuildOwners() {
	x.m.Cache.Books.Rebuild(x.m.Apps.Records())
	for _, a := range x.m.Apps.All() {
		x.m.History.Apps.Add(a)
		x.m.History.Rename(a, x.m.Cache.Path(a.Leaf))
		x.m.Pending.Order.SetClass(a.Ordered, a.Class(x.m.Cache.Tree()))
	}
}

// UpsertNamespace takes over the quota and the other annotations of a namespace.
func (x *Lifecycle) UpsertNamespace(name string, annotations map[string]string, now time.Time) []error {
	changed, errs := x.m.Cache.Namespaces.Upsert(name, annotations)
	if !changed {
		return errs
	}
	x.applyQuotas()
	x.countTypes(cache.TypesOfQuota(x.m.Cache.Namespaces[name].Quota), now)
	if x.m.Started {
		x.PlaceAll(now)
	}
	return errs
}

// DeleteNamespace forgets a namespace and takes its quota from the dynamic leaves.
func (x *Lifecycle) DeleteNamespace(name string) {
	delete(x.m.Cache.Namespaces, name)
	x.applyQuotas()
}

// unplaceFromParents takes pending pods out of queues that became parents and take no
// applications any more, so that they are placed again. Running pods stay.
func (x *Lifecycle) unplaceFromParents(now time.Time) {
	var misplaced []*model.Pod
	for _, p := range x.m.Pods {
		if p.App != nil && !p.State.HasNode() && !x.m.Cache.Tree().Queue(p.App.Leaf).Leaf {
			misplaced = append(misplaced, p)
		}
	}
	slices.SortFunc(misplaced, model.CompareAge)
	for _, p := range misplaced {
		x.Unplace(p, now)
	}
}

// RemoveEmptyQueues removes queues that were empty for the grace period.
func (x *Lifecycle) RemoveEmptyQueues(now time.Time) {
	gone, due := x.m.Cache.Empty.Remove(x.m.Cache.Tree(), now)
	for _, id := range gone {
		x.m.RemoveQueue(id)
	}
	if len(gone) > 0 {
		x.applyQuotas()
	}
	if due && x.m.Started && len(x.m.Unplaced) > 0 {
		x.PlaceAll(now) // a queue that prevented a placement may be gone
	}
}
