package lifecycle

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// UpsertNode is Store.UpsertNode, under the lock.
func (x *Lifecycle) UpsertNode(name string, allocatable resources.Vector, now time.Time) {
	n, more, came, changed := x.Cache.Nodes.Upsert(name, allocatable)
	if !changed {
		return
	}
	x.SetCapacity(x.Cache.Capacity.Sum().Add(more), now)
	kind := output.NodeChanged
	if came {
		kind = output.NodeCame
	}
	x.History.NoteNode(kind, n, x.Cache.Capacity.Sum())
	x.History.ChangedNode(n)
	x.RouteNodes()
	x.countTypes(cache.TypesIn(allocatable), now)
	x.adoption.AskHolders(n, now)
}

// NodeChanged is Store.NodeChanged, under the lock.
func (x *Lifecycle) NodeChanged(name string, now time.Time) {
	if n := x.Cache.Nodes.Get(name); n != nil {
		x.Touch(n)
		x.adoption.AskHolders(n, now)
	}
}

// DeleteNode is Store.DeleteNode, under the lock.
func (x *Lifecycle) DeleteNode(name string, now time.Time) {
	n, known, less := x.Cache.Nodes.Delete(name)
	if n == nil {
		return
	}
	x.SetCapacity(x.Cache.Capacity.Sum().Sub(less), now)
	if known {
		x.History.NoteNode(output.NodeWent, n, x.Cache.Capacity.Sum())
	}
	x.History.ChangedNode(n)
	x.RouteNodes()
	x.holds.EndNode(name, reservations.NodeGone, now)
}

// SetNodeSchedulable is Store.SetNodeSchedulable, under the lock.
func (x *Lifecycle) SetNodeSchedulable(name string, schedulable bool, now time.Time) {
	n, changed := x.Cache.Nodes.SetSchedulable(name, schedulable)
	if changed {
		x.RouteNodes()
		kind := output.NodeClosed
		if schedulable {
			kind = output.NodeOpened
			x.Preemption.NodeBound.Renew(name, now)
		}
		x.History.AddFact(output.Event{Kind: kind, Node: name})
	}
	x.History.ChangedNode(n)
	if !schedulable {
		x.holds.EndNode(name, reservations.NodeUnschedulable, now)
	}
}

// UpsertBudget is Store.UpsertBudget, under the lock.
func (x *Lifecycle) UpsertBudget(b objects.Budget, now time.Time) {
	if x.Cache.Protection.UpsertBudget(b) {
		x.TouchNamespace(b.Namespace)
	}
}

// DeleteBudget is Store.DeleteBudget, under the lock.
func (x *Lifecycle) DeleteBudget(namespace, name string, now time.Time) {
	if x.Cache.Protection.DeleteBudget(namespace, name) {
		x.TouchNamespace(namespace)
	}
}

// UpsertPriorityClass is Store.UpsertPriorityClass, under the lock.
func (x *Lifecycle) UpsertPriorityClass(name string, optOut bool, now time.Time) {
	if x.Cache.Protection.SetClass(name, optOut) {
		x.TouchAll()
	}
}
