package plans

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// A node-bound pod that found no room on its node goes this way:
//
//	          ApplyPlan: it would fit without others   deadline, or its node changed
//	refused ─────────────────────► held, no victims ───────────────────────► let through
//	  ▲  │                           │                                         │ ApplyPlan
//	  │  │ its node changed          │ ApplyPlan: victims                      ▼
//	  │  └──► let through            └────────────► held, victims leave ◄── victims
//	  │                                                 │     Commit fails: held, no victims
//	  └──── it would still not fit,                     ▼
//	        or over a max: the hold ends             room: let through, bound: the hold ends
//
// Its hold begins before any victim is chosen, and lasts while plans change, so that no
// other pod gets the room in between. A new plan is made whenever a cycle of the pod
// fails, on the current state, in which chosen victims count as leaving.
//
// Such a pod is planned for at once and regardless of its queue's guarantee, so it is not
// in the preemption queue. A pod of no queue (objects.Pod.Peer) has a record like this and
// is Unschedulable, or BackingOff if it has a deadline. Its gate is closed only while
// chosen victims leave; then it is let through by activating it.

// BeginNodeBoundPlan returns the input of a decision for a node-bound pod, or why none is made
// now.
func (x *Plans) BeginNodeBoundPlan(uid types.UID, inPermit []types.UID, now time.Time) (*output.NodeBoundPlanInput, reasons.Reason) {
	p, why := x.asker(uid)
	if why.None() && p.RequiredNode == "" {
		why = reasons.Brief(reasons.Starting)
	}
	if why.Code == reasons.Starting {
		x.m.Pending.TooEarly.Note(uid, now)
	}
	if !why.None() {
		return nil, why
	}
	x.m.Freed(x.m.Preemption.NodeBound.Tried(uid, now))
	x.m.Preemption.Watches.Remove(uid)
	if n := x.m.Cache.Nodes.Get(p.RequiredNode); n != nil {
		x.holds.SetInPermit(p, inPermit)
		p.Asker.Impossible = p.Asker.Impossible && p.Asker.SawNode == n.Generation()
		p.Asker.SawNode = n.Generation()
	}
	_, unusable := x.m.Cache.Nodes.Unusable(p.RequiredNode)
	limits := x.m.CheckPodLimits(p)
	lossEnd, lost := p.PlanFrom()
	switch {
	case !unusable.None():
		return nil, x.awaitNode(p, unusable, time.Time{})
	case !limits.OK():
		x.holds.EndHold(p, reservations.GivenUp, limits.Reason, now)
		return nil, limits.Reason
	case lossEnd.After(now) && !p.Asker.HoldsNode():
		return nil, x.awaitNode(p, lost, lossEnd)
	case p.Asker.Impossible:
		return nil, x.awaitNode(p, p.Asker.Refused, time.Time{})
	}
	p.Asker.TriedAt = now
	in := x.nodeBoundInput(p, now)
	if in.Params.Bound(p.Namespace) {
		in.Node.Queues = x.m.Cache.Snapshot()
	}
	return in, reasons.Reason{}
}

// awaitNode notes why a node-bound pod is refused, and brings it back when its node
// changes. (If there is no node, the scheduler brings the pod back when it comes.) A pod of
// no queue also comes back at the given time; for others the end of the cycle sees to that.
func (x *Plans) awaitNode(p *model.Pod, why reasons.Reason, from time.Time) reasons.Reason {
	p.Asker.Refused = why
	if x.m.Cache.Nodes.Get(p.RequiredNode) != nil {
		x.watchNode(p)
	}
	if p.Foreign && !from.IsZero() {
		x.states.ReturnBy(p, from)
	}
	return why
}

// watchNode brings a node-bound pod back when its node changes (takeChanges).
func (x *Plans) watchNode(p *model.Pod) {
	x.m.Preemption.Watches.Set(p.UID, []preemption.Watched{preemption.WatchedNode(p.RequiredNode)})
}

// nodeBoundInput returns the input of a decision for a pod.
func (x *Plans) nodeBoundInput(p *model.Pod, now time.Time) *output.NodeBoundPlanInput {
	n := x.m.Cache.Nodes.Get(p.RequiredNode)
	t := &x.m.Preemption.Snapshot.Types
	node, before := x.RequiredView(t, n, p, now)
	ask := &daemonset.Ask{Ask: model.AskOf(t, p), OverMax: OverMaxPath(x.m.Cache.Tree(), p)}
	if p.Asker.HoldsNode() {
		ask.Held = max(now.Sub(p.Asker.HeldFrom), 0)
	}
	ask.Arriving = t.Amounts(p.Charged(cache.Arriving))
	node.Types = t.Names() // amounts may have added types
	return &output.NodeBoundPlanInput{Node: node, Before: before, Ask: ask, Params: x.m.Preemption.NodeBoundParams}
}

// RequiredView returns a node as a decision for an asker sees it, and the pods that
// are before the asker.
func (x *Plans) RequiredView(t *preemption.Types, n *cache.Node, p *model.Pod, now time.Time) (*daemonset.Node, []objects.Ref) {
	forOwn := x.ownTimeLeft(p, now)
	view := &daemonset.Node{Name: n.Name(), Allocatable: t.Amounts(n.Allocatable())}
	budgets, left := map[int]int{}, x.m.DisruptionsLeft(true)
	for _, other := range x.m.PodsOn(n) {
		v := x.m.PodView(t, other)
		for i, b := range v.Budgets {
			if _, known := budgets[b]; !known {
				budgets[b] = len(view.Budgets)
				view.Budgets = append(view.Budgets, left[b])
			}
			v.Budgets[i] = budgets[b]
		}
		if other.Peer && v.Protection == planner.Foreign {
			v.Protection = planner.Unprotected
		}
		if mayGo := v.Protection == planner.Unprotected || v.Protection == planner.Foreign; mayGo && other.Namespace == p.Namespace && x.m.Preemption.Grace(other.Pod) >= forOwn {
			v.Protection = planner.TooSlow
		}
		view.Pods = append(view.Pods, v)
	}
	var before []objects.Ref
	for _, h := range x.holds.NodeBoundBefore(p) {
		before = append(before, objects.Ref{UID: h.Asker, Namespace: h.Namespace, Name: h.Name})
		view.Before = append(view.Before, t.Amounts(h.Request))
	}
	return view, before
}

// ownTimeLeft is for how long an asker may hold its node for pods of its own namespace.
func (x *Plans) ownTimeLeft(p *model.Pod, now time.Time) time.Duration {
	return x.m.Preemption.OwnTime.Left(p.UID, p.RequiredNode, p.Namespace, x.m.Preemption.HoldTimeout, now)
}

// OverMaxPath is the path of the queue that [holds.OverMax] returns; empty for none.
func OverMaxPath(v queues.View, p *model.Pod) string {
	if q := holds.OverMax(v, p); q != nil {
		return q.Path
	}
	return ""
}
