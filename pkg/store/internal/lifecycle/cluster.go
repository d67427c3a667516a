package lifecycle

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// UpsertNode sets the allocatable of a node, and with it the capacity and the types that count.
func (x *Lifecycle) UpsertNode(name string, allocatable resources.Vector, now time.Time) {
	n, more, came, changed := x.m.Cache.Nodes.Upsert(name, allocatable)
	if !changed {
		return
	}
	x.m.SetCapacity(x.m.Cache.Capacity.Sum().Add(more), now)
	kind := output.NodeChanged
	if came {
		kind = output.NodeCame
	}
	x.m.History.NoteNode(kind, n, x.m.Cache.Capacity.Sum())
	x.m.History.ChangedNode(n)
	x.m.RouteNodes()
	x.countTypes(cache.TypesIn(allocatable), now)
	x.holds.RetryHolders(n, now)
}

// NodeChanged notes a change that matters to the filters only.
func (x *Lifecycle) NodeChanged(name string, now time.Time) {
	if n := x.m.Cache.Nodes.Get(name); n != nil {
		x.m.Touch(n)
		x.holds.RetryHolders(n, now)
	}
}

// DeleteNode removes a node and ends its holds. If it comes back, its node-bound pods go first,
// even before its event.
func (x *Lifecycle) DeleteNode(name string, now time.Time) {
	n, known, less := x.m.Cache.Nodes.Delete(name)
	if n == nil {
		return
	}
	x.m.SetCapacity(x.m.Cache.Capacity.Sum().Sub(less), now)
	if known {
		x.m.History.NoteNode(output.NodeWent, n, x.m.Cache.Capacity.Sum())
	}
	x.m.History.ChangedNode(n)
	x.m.RouteNodes()
	x.holds.EndNode(name, reservations.NodeGone, now)
	x.m.Preemption.NodeBound.Reset(name, now)
}

// SetNodeSchedulable cordons a node, which ends its holds, or opens it.
func (x *Lifecycle) SetNodeSchedulable(name string, schedulable bool, now time.Time) {
	n, changed := x.m.Cache.Nodes.SetSchedulable(name, schedulable)
	if changed {
		x.m.RouteNodes()
		kind := output.NodeClosed
		if schedulable {
			kind = output.NodeOpened
			x.m.Preemption.NodeBound.Reset(name, now)
		}
		x.m.History.AddFact(output.Event{Kind: kind, Node: name})
	}
	x.m.History.ChangedNode(n)
	if !schedulable {
		x.holds.EndNode(name, reservations.NodeUnschedulable, now)
	}
}

// SetPriorityClass sets whether the pods of a PriorityClass are opted out.
func (x *Lifecycle) SetPriorityClass(name string, optOut bool) {
	if x.m.Cache.Protection.SetClass(name, optOut) {
		x.m.TouchAll()
	}
}
