package model

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Charge sets what a pod of an application is charged, and updates what depends on it: whether the
// application counts, the orders, and which queues may have more room.
func (x *Model) Charge(p *Pod, amount resources.Vector, in cache.Columns) {
	a := p.App
	c := x.Cache.Books.Charge(&p.CachePod, amount, in)
	x.updateCounted(a)
	x.Pending.Demand.Changed()
	x.History.Apps.Add(a)
	x.queuesChanged(a.Leaf, c)
	if c.ChangesOrder() {
		x.Pending.Order.SetAppUsed(a.Ordered, a.Committed())
		for q := range x.Cache.Tree().Ancestors(a.Leaf) {
			x.Pending.Order.SetUsed(q.ID, q.Committed(), q.CommittedKept())
		}
		x.Pending.RetryEarly.Tell(x.Cache.Tree(), a.Ordered)
		x.Pending.AheadOnly.Tell(x.Cache.Tree(), a.Ordered)
	}
	x.PreemptionQueue.Order.Tell(x.Cache.Tree(), a.Ordered)
	if c.LeavesRoom() {
		x.Pending.NoteMoreRoom(x.Cache.Tree(), a.Leaf)
	}
}

// queuesChanged notes that the queues of a leaf changed for plans. Changes of pending pods
// do not count; otherwise an asker's own cycles would trigger its checks. Nor does root,
// which changes with every pod: the retry interval covers it.
func (x *Model) queuesChanged(leaf queues.ID, c cache.Change) {
	if x.Preemption.Watches.Idle() || !c.ForPlans() {
		return
	}
	for q := range x.Cache.Tree().Ancestors(leaf) {
		if !q.IsRoot() {
			x.Preemption.Watches.Change(preemption.WatchedQueue(q.ID))
		}
	}
}

// Recharge charges a pod in the columns of its state ([Pod.Columns]). Call it when the pod gets a slot
// or a node, and when it begins or ends to hold a node or to leave one.
func (x *Model) Recharge(p *Pod) {
	if p.App != nil {
		x.RechargeIn(p, p.Columns(x.Preemption.LongestLeaving()))
	}
}

// RechargeIn is Recharge with the given columns.
func (x *Model) RechargeIn(p *Pod, in cache.Columns) {
	if p.In() == in {
		return
	}
	x.Charge(p, p.Amount(), in)
	x.TouchPod(p)
}

// moves returns the columns of a pod that is about to come to a node or to leave one; none for other
// pods. A lingering pod is in none: it counts as used until it is gone. A victim of a node-bound
// asker of the same namespace or queue is Leaving but not Preempted: its queue keeps what it uses
// until it is gone, as for a pod that its owner deletes.
func (p *Pod) moves(longest time.Duration) cache.Columns {
	switch {
	case p.lingers(longest):
		return 0
	case p.Leaves() && !p.ChosenByOwn && (p.ChosenBy != "" || p.Preempted):
		return cache.Leaving | cache.Preempted
	case p.Leaves():
		return cache.Leaving
	case !p.State.HasNode() && p.Asker.HoldsNode():
		return cache.Arriving
	}
	return 0
}

// CheckPodQuota is the verdict of all quotas on a pod; see [cache.Books.CheckQuota].
func (x *Model) CheckPodQuota(p *Pod, on queues.Basis) queues.Verdict {
	return x.Cache.Books.CheckQuota(&p.App.CacheApp, p.App.Counted(), p.Request, on)
}

// CheckPodLimits is the verdict of the quotas that preemption never makes room in (users, groups,
// maxapplications). It counts pods that have a node, and those that hold one unless the pod itself
// holds one (Basis). A pod of no queue has none.
func (x *Model) CheckPodLimits(p *Pod) queues.Verdict {
	if p.App == nil {
		return queues.Granted
	}
	return x.Cache.Books.CheckLimits(x.Cache.Tree(), &p.App.CacheApp, p.App.Counted(), p.Request, p.Basis())
}

// Refused is a verdict against a pod that no queue gives.
func Refused(why reasons.Reason) queues.Verdict {
	return queues.Verdict{At: queues.NoQueue, Reason: why}
}

// IndexQueues gives the orders all queues with changed settings.
func (x *Model) IndexQueues() {
	for q := range x.Cache.Tree().All() {
		x.indexQueue(q)
	}
}

// IndexPath is IndexQueues for the queues from root to a leaf.
func (x *Model) IndexPath(leaf queues.ID) {
	for _, q := range slices.Backward(slices.Collect(x.Cache.Tree().Ancestors(leaf))) {
		x.indexQueue(q)
	}
}

// indexQueue gives a queue to all orders that do not have its current settings.
func (x *Model) indexQueue(q *queues.Queue) {
	if x.Pending.Order.Has(q.ID, q.Settings) {
		return
	}
	x.Pending.Order.SetQueue(q.ID, q.Settings)
	x.Pending.Order.SetUsed(q.ID, q.Committed(), q.CommittedKept())
	for _, o := range x.sparse {
		o.SetQueue(q)
	}
}

// RemoveQueue takes a queue that is gone out of all orders.
func (x *Model) RemoveQueue(id queues.ID) {
	x.Pending.Order.RemoveQueue(id)
	for _, o := range x.sparse {
		o.RemoveQueue(id)
	}
}

// SetStrict sets how all orders compare queues with their guarantees.
func (x *Model) SetStrict(strict bool) {
	x.Pending.Order.SetStrict(strict)
	for _, o := range x.sparse {
		o.SetStrict(strict)
	}
}

// SetCapacity sets the capacity of all nodes.
func (x *Model) SetCapacity(sum resources.Vector, now time.Time) {
	x.Cache.Tree().SetCapacity(sum)
	if x.Cache.Capacity.Set(sum, x.Started, now) {
		x.TellCapacity()
	}
}

// TellCapacity gives the orders the capacity that they are to use.
func (x *Model) TellCapacity() {
	x.Pending.Order.SetCapacity(x.Cache.Capacity.Told())
	for _, o := range x.sparse {
		o.SetCapacity(x.Cache.Capacity.Told())
	}
}
