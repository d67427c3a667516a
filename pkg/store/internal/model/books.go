package model

import (
	"iter"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"k8s.io/apimachinery/pkg/types"
)

// queuesChanged notes that the queues of a leaf changed for plans. Changes of pending pods
// do not count; otherwise a preemptor's own cycles would trigger its checks.
func (x *Model) queuesChanged(leaf queues.ID, c *cache.Change) {
	if x.Preemption.Watches.Idle() || !c.ForPlans() {
		return
	}
	for q := range x.Cache.Tree().Ancestors(leaf) {
		x.Preemption.Watches.Change(preemption.WatchedQueue(q.ID))
	}
}

// Charge sets what a pod of an application is charged, and updates the orders.
func (x *Model) Charge(p *Pod, amount resources.Vector, in cache.Columns) {
	a := p.App
	c := x.Cache.Books.Charge(&p.CachePod, amount, in)
	x.Pending.Demand.Changed()
	x.History.Apps.Add(a)
	x.queuesChanged(a.Leaf, &c)
	x.Asking.Order.Tell(x.Cache.Tree(), a, a.Leaf, a.Committed())
	if !c.Orders() {
		return
	}
	x.Pending.SetUsed(x.Cache.Tree(), a, a.Ordered, a.Leaf, a.Committed())
}

// Weigh updates what a pod is charged as leaving or arriving: leaving if it has a node
// and is about to leave it, arriving if it holds a node and has none yet.
func (x *Model) Weigh(p *Pod) {
	if p.App == nil {
		return
	}
	x.WeighAs(p, p.moves())
}

// moving are the columns of pods that are about to come to a node or to leave it.
const moving = cache.Arriving | cache.Leaving | cache.Preempted

// moves has the columns that a pod belongs to of these.
func (p *Pod) moves() cache.Columns {
	switch {
	case p.Leaves() && (p.ChosenBy != "" || p.Preempted):
		return cache.Leaving | cache.Preempted
	case p.Leaves():
		return cache.Leaving
	case !p.State.HasNode() && p.Asks.Holds():
		return cache.Arriving
	}
	return 0
}

func (x *Model) WeighAs(p *Pod, in cache.Columns) {
	if p.In()&moving == in {
		return
	}
	arrived := p.Is(cache.Arriving)
	x.Charge(p, p.Amount(), p.In()&^moving|in)
	if arrived {
		x.Pending.Release(x.Cache.Tree(), p.App.Leaf)
	}
	x.TouchPod(p)
}

// Live updates whether a pod of an application lives: it is known and not being deleted.
func (x *Model) Live(p *Pod, lives bool) {
	x.Cache.Originators.Live(&p.CachePod, lives)
	x.routeOriginators()
}

// routeOriginators notes that pods changed for plans and readers, because it may be other
// than before whether they are originators.
func (x *Model) routeOriginators() {
	for _, p := range x.Cache.Originators.Take() {
		x.TouchPod(x.Pods[p.UID])
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
	told := x.Cache.Capacity.Told()
	x.Pending.SetCapacity(told)
	x.Asking.Order.SetCapacity(told)
}

// Chosen marks a pod as a victim of a preemptor, or of none if asker is empty.
func (x *Model) Chosen(p *Pod, asker types.UID) {
	if p.ChosenBy != asker {
		x.Recounted(p, func() { p.ChosenBy = asker })
	}
}

// AtWork drops the state that only pods that do not run need.
func (x *Model) AtWork(p *Pod, now time.Time) {
	if p.Report != nil && x.History.Reports.Settle(p.Report, now) {
		p.Report = nil
	}
	if p.Asks != nil && p.Asks.IsEmpty() {
		p.Asks = nil
	}
	if p.Turn.Over() {
		p.Turn = x.NoTurn
	}
}

// CountForeign adds n to the number of living pods of each owner of a foreign pod, unless
// the pod is being deleted.
func (x *Model) CountForeign(p *Pod, n int) {
	if p.Deleting {
		return
	}
	for _, owner := range p.Owners {
		x.Cache.Originators.Owns(owner, n)
	}
	x.routeOriginators()
}

// TakeOver takes over an event of a known pod. The pod is marked as changed for plans if
// budgets count it differently.
func (x *Model) TakeOver(p *Pod, event *objects.Pod) {
	health, before := p.Health, []int(nil)
	if health != event.Health {
		before = x.Cache.Protection.Budgets(p.Guarded())
	}
	x.Recounted(p, func() { p.Say(event) })
	x.Cache.Types.Note(p.Pod)
	if health != event.Health && !slices.Equal(before, x.Cache.Protection.Budgets(p.Guarded())) {
		x.TouchPod(p)
	}
}

// Recounted runs a change of a known pod and updates the sums of budgets.
func (x *Model) Recounted(p *Pod, change func()) {
	before := p.Guarded()
	change()
	x.Cache.Protection.Change(before, p.Guarded())
}

func (x *Model) GuardedPods() iter.Seq[cache.Guarded] {
	return func(yield func(cache.Guarded) bool) {
		for _, p := range x.Pods {
			if !yield(p.Guarded()) {
				return
			}
		}
	}
}

// DisruptionsLeft is what the budgets still allow, for [planner.World]. Victims of plans
// in force count as gone if inForce is true.
func (x *Model) DisruptionsLeft(inForce bool) []int64 {
	return x.Cache.Protection.Left(x.GuardedPods(), inForce)
}

func (x *Model) TouchNamespace(namespace string) {
	for n := range x.Cache.Nodes.All() {
		if x.Preemption.Snapshot.IsStale(n.Name()) {
			continue
		}
		for p := range n.Pods() {
			if p.Namespace == namespace {
				x.Touch(n)
				break
			}
		}
	}
}
