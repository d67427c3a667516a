package admission

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Demand decides which pods that found no node would run if nodes were added. Make one with
// NewDemand.
type Demand struct{ m *model.Model }

// NewDemand returns the demand of a model.
func NewDemand(m *model.Model) *Demand { return &Demand{m} }

// Take returns at most limit pods for which PodScheduled needs an update: first those for which
// no node is wanted, because an autoscaler does not take a node back soon, then by UID.
func (x *Demand) Take(limit int, now time.Time) []output.Report {
	x.recompute(now)
	if !x.m.Started {
		return nil
	}
	var out []output.Report
	var beyond, within []types.UID
	for _, uid := range x.m.Pending.Demand.ToCheck() {
		if p := x.m.Pods[uid]; p != nil && p.WithinQuota() {
			within = append(within, uid)
		} else {
			beyond = append(beyond, uid)
		}
	}
	for _, uid := range append(beyond, within...) {
		if len(out) == limit {
			break
		}
		x.m.Pending.Demand.Checked(uid)
		p := x.m.Pods[uid]
		if p == nil || p.State.HasSlot() || p.State.HasNode() || p.Asker.HoldsNode() {
			continue
		}
		if want, why := p.DemandOf(); want != objects.DemandUnsaid && want != p.Demand {
			out = append(out, output.Report{Ref: p.Ref(), Demand: want, Reason: why})
		}
	}
	return out
}

// The demand are pods that found no node and would run if nodes were added. In the order,
// one after another, such pods count against every quota. A pod is within the demand while
// all quotas allow it in addition to allocated pods and the pods before it, and beyond
// otherwise; the missing members of a PodGroup are within together, or beyond. Nothing is
// charged: a pod beyond is still tried, and runs where it fits.
//
//	found no node ──► checked on the sum so far ──► within (added to the sum) or beyond
//	some time after a change: the sum is computed over all of them, in the order where
//	a quota has no room for all

// FoundNoNode adds a pod that found no node to the demand, if every quota allows it. A pod that is
// beyond stays so until the next computation, because the sum only grows until then.
func (x *Demand) FoundNoNode(p *model.Pod, now time.Time) {
	if p.RequiredNode != "" || p.App == nil || p.State.HasNode() {
		return // no autoscaler adds the node of a node-bound pod
	}
	x.m.Pending.Demand.Add(p.UID)
	switch {
	case p.WithinQuota() && !p.App.Counted(): // only its application may be missing in the sum
		x.addToSum(p.App, resources.Vector{})
	case p.DemandVerdict == nil:
		x.set(p, x.count(p), now)
	}
}

// addToSum adds a request to the sum and, with the first one, its application.
func (x *Demand) addToSum(a *model.App, request resources.Vector) {
	x.m.Pending.Demand.Count(x.m.Cache.Tree(), a.Leaf, a.Owner, request, a.Ordered, a.Counted())
}

// Read takes over what PodScheduled of a pending pod says. This process or an
// earlier one may have written it.
func (x *Demand) Read(p *model.Pod) {
	if p.Demand == objects.DemandUnsaid || p.RequiredNode != "" || p.State.HasNode() {
		return
	}
	if p.App != nil && p.Demand != objects.DemandOther {
		x.m.Pending.Demand.Add(p.UID)
	}
	x.m.Pending.Demand.Recheck(p.UID) // an earlier write may have been refused or replaced
}

// Leave takes out a pod that has got a node or lost its queue.
func (x *Demand) Leave(p *model.Pod) {
	if x.m.Pending.Demand.Remove(p.UID) {
		p.DemandVerdict = nil
	}
}

// count adds a pod to the sum, or returns the reason why it would not run. A PodGroup
// that has not started is decided with the first of its members, and as a whole.
func (x *Demand) count(p *model.Pod) queues.Verdict {
	if !p.GroupIncomplete() {
		return x.countOne(p)
	}
	if v := x.decideGroup(p.PodGroup); !v.OK() {
		return v
	}
	if x.m.Pending.Demand.HasMember(p.UID) {
		return x.m.Cache.Books.CheckQuota(&p.App.CacheApp, true, p.Request, queues.OnArriving) // other pods may have started since
	}
	return x.countOne(p) // it may start after those that the group lacks
}

// decideGroup is countGroup, once until the sum is recomputed.
func (x *Demand) decideGroup(g *model.PodGroup) queues.Verdict {
	v, decided := x.m.Pending.Demand.Decided(g.Name())
	if !decided {
		v = x.countGroup(g)
		x.m.Pending.Demand.Decide(g.Name(), v)
	}
	return v
}

// countGroup adds the missing members of a PodGroup to the sum, tried or not, or returns the reason
// why they would not start. If there are more members than needed, those that found no node are
// taken first.
func (x *Demand) countGroup(g *model.PodGroup) queues.Verdict {
	missing, enough := model.MissingMembers(g, nil, func(m *model.Pod) bool { return x.m.Pending.Demand.Has(m.UID) })
	if !enough {
		return model.Refused(g.Why())
	}
	shares, sum := sharesOf(missing), x.m.Pending.Demand.Sum()
	counted := func(a *model.App) bool { return a.Counted() || x.m.Pending.Demand.Starts(a.Ordered) }
	if v := checkMembers(x.m, g, len(missing), shares, queues.OnArriving, sum.OnTop(), counted); !v.OK() {
		if running := checkMembers(x.m, g, len(missing), shares, queues.OnAllocated, queues.NewDemand(), counted); !running.OK() {
			return running // as in countOne
		}
		return v
	}
	for _, m := range missing {
		x.addToSum(m.App, m.Request)
		x.m.Pending.Demand.CountMember(m.UID)
	}
	return queues.Granted
}

// countOne is count for a pod that starts alone.
func (x *Demand) countOne(p *model.Pod) queues.Verdict {
	if !queues.HasQuota(x.m.Cache.Tree(), p.App.Leaf) {
		return queues.Granted
	}
	starts := !p.App.Counted() && !x.m.Pending.Demand.Starts(p.App.Ordered)
	check := func(on queues.Basis) queues.Verdict {
		return x.m.Cache.Books.CheckQuota(&p.App.CacheApp, !starts, p.Request, on)
	}
	if v := check(queues.OnDemand(x.m.Pending.Demand.Sum())); !v.OK() {
		if running := check(queues.OnAllocated); !running.OK() {
			return running // as in the order, so that the reason stays the same
		}
		return v
	}
	x.addToSum(p.App, p.Request)
	return queues.Granted
}

// set sets a pod's verdict. If it changed, users are told.
func (x *Demand) set(p *model.Pod, v queues.Verdict, now time.Time) {
	if p.WithinQuota() != v.OK() || p.BeyondQuota().Code != v.Reason.Code {
		x.m.History.Changed(p)
		x.m.History.Reports.Look(p.Report, now) // the reason that it waits changed, too
	}
	p.DemandVerdict = &v
}

// recompute recomputes the sum after a change, when its interval has passed: in the
// order of the waiting pods, as if each pod within had a node.
func (x *Demand) recompute(now time.Time) {
	if !x.m.Pending.Demand.Restart(now) {
		return
	}
	waiting := x.m.Pending.Demand.Pods()
	for _, uid := range waiting {
		// A pod with a slot is about to be tried, before all others. After a start it has no
		// verdict yet and counts, too.
		if p := x.m.Pods[uid]; p.State.HasSlot() && p.BeyondQuota().None() && !p.Asker.HoldsNode() {
			x.set(p, x.count(p), now)
		}
	}
	waiting = slices.DeleteFunc(waiting, func(uid types.UID) bool {
		p := x.m.Pods[uid]
		return p.Asker.HoldsNode() || p.State.HasSlot() // it is charged as arriving, or counted above
	})
	t, hasOrder := x.newTrial(), x.orderMatters(waiting)
	for _, uid := range waiting {
		p := x.m.Pods[uid]
		if hasOrder(p) {
			t.push(p, x.m.Pending.Demand.Starts(p.App.Ordered))
			continue
		}
		if queues.HasQuota(x.m.Cache.Tree(), p.App.Leaf) {
			x.addToSum(p.App, p.Request)
		}
		x.set(p, queues.Granted, now)
	}
	t.run(x, now)
	for _, uid := range waiting {
		if ask := t.byUID[uid]; ask != nil {
			x.set(x.m.Pods[uid], x.beyond(x.m.Pods[uid], ask.Group().Verdict()), now)
		}
	}
}

// orderMatters returns a function that tells whether the verdict on one of these pods depends
// on the order: a quota on its path has no room for all of them, or some of them start only
// with their PodGroups.
func (x *Demand) orderMatters(waiting []types.UID) func(*model.Pod) bool {
	all, starting := queues.NewDemand(), map[*model.App]bool{}
	for _, uid := range waiting {
		p := x.m.Pods[uid]
		if p.GroupIncomplete() {
			return func(*model.Pod) bool { return true }
		}
		if !queues.HasQuota(x.m.Cache.Tree(), p.App.Leaf) {
			continue
		}
		starts := !p.App.Counted() && !x.m.Pending.Demand.Starts(p.App.Ordered) && !starting[p.App]
		starting[p.App] = true
		all.Add(x.m.Cache.Tree(), p.App.Leaf, p.App.Owner, p.Request, starts)
	}
	tight := x.m.Cache.Books.Tight(all, queues.OnDemand(x.m.Pending.Demand.Sum()))
	return func(p *model.Pod) bool {
		for q := range x.m.Cache.Tree().Ancestors(p.App.Leaf) {
			if tight[q.ID] {
				return true
			}
		}
		return false
	}
}

// run places the pods of a trial in their order. Those that are left in it are beyond.
func (t *trial) run(x *Demand, now time.Time) {
	for ask, ok := t.index.Next(); ok; ask, ok = t.index.Next() {
		p := x.m.Pods[types.UID(ask.UID())]
		members := t.groups[p.PodGroup]
		delete(t.groups, p.PodGroup)
		if len(members) > 0 {
			x.setGroup(t, p.PodGroup, members, now)
			continue // a further member stays in the trial
		}
		if v := x.count(p); !v.OK() {
			t.index.Block(ask.Group(), v)
			continue
		}
		x.set(p, queues.Granted, now)
		t.place(p)
	}
}

// beyond is the verdict of a pod that is left in the trial: that of its PodGroup if the group is
// refused, else that of the queue.
func (x *Demand) beyond(p *model.Pod, queue queues.Verdict) queues.Verdict {
	if p.GroupIncomplete() {
		if group := x.decideGroup(p.PodGroup); !group.OK() {
			return group
		}
	}
	return queue
}

// setGroup decides on a PodGroup when the first of its members is next in the trial, and
// takes the members that it decides on out of it.
func (x *Demand) setGroup(t *trial, g *model.PodGroup, members []*model.Pod, now time.Time) {
	v := x.decideGroup(g)
	for _, m := range members {
		switch {
		case !v.OK():
			x.set(m, v, now)
			t.remove(m)
		case x.m.Pending.Demand.HasMember(m.UID):
			x.set(m, v, now)
			t.place(m)
		}
	}
}

// trial is the order of some pods while they get nodes one after another.
type trial struct {
	tree   *queues.Draft
	index  *order.Index
	byUID  map[types.UID]*order.Ask
	groups map[*model.PodGroup][]*model.Pod // members of those that have not started
	apps   map[*model.App]*order.App
	used   map[*model.App]resources.Vector // committed plus placed
	below  map[queues.ID]resources.Vector  // placed below a queue
}

// newTrial returns a trial without pods.
func (x *Demand) newTrial() *trial {
	t := &trial{
		tree:   x.m.Cache.Tree(),
		index:  order.NewIndex(),
		byUID:  map[types.UID]*order.Ask{},
		groups: map[*model.PodGroup][]*model.Pod{},
		apps:   map[*model.App]*order.App{},
		used:   map[*model.App]resources.Vector{},
		below:  map[queues.ID]resources.Vector{},
	}
	t.index.SetCapacity(x.m.Cache.Capacity.Told())
	t.index.SetStrict(x.m.Preemption.StrictGuarantee)
	return t
}

// push adds a pod to the trial. starts is true if another pod of the demand already makes
// its application count.
func (t *trial) push(p *model.Pod, starts bool) {
	a := p.App
	if t.apps[a] == nil {
		t.addPath(a.Leaf)
		class := a.Class(t.tree)
		class.Counted = class.Counted || starts
		t.apps[a], t.used[a] = t.index.NewApp(a.Leaf, a.Name.String(), a.Submitted, class), a.Committed()
		t.index.SetAppUsed(t.apps[a], t.used[a])
	}
	t.byUID[p.UID] = t.index.Push(t.apps[a], p.AskKey(), p.Request, "")
	if p.GroupIncomplete() {
		t.groups[p.PodGroup] = append(t.groups[p.PodGroup], p)
	}
}

// addPath adds the queues on a leaf's path, root first.
func (t *trial) addPath(id queues.ID) {
	q := t.tree.Queue(id)
	if _, known := t.below[id]; known || q == nil {
		return
	}
	t.addPath(q.Parent)
	t.below[id] = resources.Vector{}
	t.index.SetQueue(id, q.Settings)
	t.index.SetUsed(id, q.Committed(), q.CommittedKept())
}

// remove takes a pod out of the trial.
func (t *trial) remove(p *model.Pod) {
	t.index.Remove(t.byUID[p.UID])
	delete(t.byUID, p.UID)
}

// place takes a pod out of the trial, as if it ran.
func (t *trial) place(p *model.Pod) {
	t.remove(p)
	a := p.App
	t.used[a] = t.used[a].Add(p.Request)
	t.index.SetAppUsed(t.apps[a], t.used[a])
	c := a.Class(t.tree)
	c.Counted = true
	t.index.SetClass(t.apps[a], c)
	for q := range t.tree.Ancestors(a.Leaf) {
		more := t.below[q.ID].Add(p.Request)
		t.below[q.ID] = more
		t.index.SetUsed(q.ID, q.Committed().Add(more), q.CommittedKept().Add(more))
	}
}
