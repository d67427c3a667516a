package cycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/lifecycle"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/plans"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Cycle takes up the steps of scheduling cycles. Make one with New.
type Cycle struct {
	m      *model.Model
	demand *admission.Demand
	states *admission.States
	slots  *admission.Slots
	holds  *holds.Holds
	plans  *plans.Plans
	life   *lifecycle.Lifecycle
}

// New returns the steps of cycles on a model.
func New(
	m *model.Model, demand *admission.Demand, states *admission.States, slots *admission.Slots, held *holds.Holds, p *plans.Plans, life *lifecycle.Lifecycle,
) *Cycle {
	return &Cycle{m, demand, states, slots, held, p, life}
}

// Gate is Gate of the store under the lock. changed is false if nothing changed that another pod or a
// reader depends on: the pod stays in its state, or went from Admitted to Scheduling.
func (x *Cycle) Gate(uid types.UID, now time.Time) (why reasons.Reason, changed bool) {
	p, known := x.m.Pods[uid]
	switch {
	case !known:
		return reasons.Brief(reasons.Starting), false
	case p.Foreign && p.State == state.Unschedulable && x.holds.AwaitsHeldNode(p) && !p.Asker.Activated:
		return reasons.Brief(reasons.MakingRoom), false
	case p.Foreign:
		if !p.State.HasNode() {
			p.NodesGeneration = x.m.Cache.Nodes.Generation()
		}
		return reasons.Reason{}, false
	case p.State == state.Admitted:
		x.begin(p)
		return reasons.Reason{}, false
	case !x.m.Started:
		return reasons.Brief(reasons.Starting), false
	}
	before := p.State
	if p.State == state.Scheduling && p.Asker.HoldsNode() {
		x.holds.FailedHolder(p, now)
	}
	if p.State == state.Scheduling {
		// It entered before, so its cycle has ended without a call that reports the
		// result.
		x.states.ToUnschedulable(p, reasons.New(reasons.BackingOff, "the scheduler could not say whether a node can take the pod"), now)
		x.m.Pending.Keys.Remove(uid)
	}
	if p.State == state.Unschedulable && !x.holds.AwaitsHeldNode(p) {
		x.states.Requeue(p, now)
	}
	if p.State.HasNode() {
		return reasons.Reason{}, false // it has passed every gate
	}
	return reasons.Brief(x.states.Last(p).Code), p.State != before
}

// begin begins a cycle of an admitted pod.
func (x *Cycle) begin(p *model.Pod) {
	x.states.SetState(p, state.Scheduling)
	p.NodesGeneration = x.m.Cache.Nodes.Generation()
}

// CheckQuota is the verdict at the beginning of a cycle. It does not check
// maxapplications, and charges nothing.
func (x *Cycle) CheckQuota(uid types.UID) queues.Verdict {
	p, known := x.m.Pods[uid]
	switch {
	case !known:
		return model.Refused(reasons.New(reasons.Starting, "the pod is not known yet"))
	case p.App == nil:
		return model.Refused(x.states.Explain(p))
	}
	if v := x.states.CheckGroup(p); !v.OK() {
		return v
	}
	return x.m.Cache.Books.CheckQuota(&p.App.CacheApp, true, p.Request, p.Basis())
}

// QuotaRefused handles a verdict of a quota against a pod. It puts the pod back into the order,
// except that a cycle for a plan goes on after the first verdict, to make the plan.
func (x *Cycle) QuotaRefused(uid types.UID, now time.Time) {
	p, known := x.m.Pods[uid]
	switch {
	case !known || p.Foreign:
	case x.m.PreemptionQueue.Current() == uid && !p.Asker.RefusalEndsCycle:
		p.Asker.RefusalEndsCycle = true
	case p.Asker.HoldsNode():
		x.holds.FailedHolder(p, now)
	default:
		x.states.RequeueRefused(p)
		// PodScheduled says unschedulable. If a quota refuses the pod, no new node helps and its
		// demand is judged again. If others go first or its PodGroup does not start, the verdict
		// stays.
		if p.WithinQuota() && !x.m.CheckPodQuota(p, p.Basis()).OK() {
			p.DemandVerdict = nil
		}
		x.demand.FoundNoNode(p, now)
	}
}

// ends returns the pod of a cycle that ends without a node. It returns nil for a pod that cannot
// be in a cycle, and for one that holds a node: the hold decides when that is tried again.
func (x *Cycle) ends(uid types.UID, now time.Time) *model.Pod {
	p, known := x.m.Pods[uid]
	if !known || p.App == nil || p.State.HasNode() {
		return nil
	}
	if p.Asker.HoldsNode() {
		x.holds.FailedHolder(p, now)
		return nil
	}
	x.m.Pending.Keys.Remove(uid)
	return p
}

// NoNode makes a pod Unschedulable after a cycle that found no node, and adds it to its
// equivalence class and to the demand.
func (x *Cycle) NoNode(uid types.UID, class string, why reasons.Reason, now time.Time) {
	p := x.ends(uid, now)
	if p == nil {
		return
	}
	if p.RequiredNode != "" || p.GroupIncomplete() {
		class = "" // none: the pod has its own node, or is tried as a member of its group
	}
	x.m.Pending.Window.Failed()
	x.m.Pending.Classes.Join(&p.EquivalenceClass, p.App.Ordered, p.Request, class, p.State)
	x.states.ToUnschedulable(p, why, now)
	x.demand.FoundNoNode(p, now)
	x.m.Pending.Classes.Fail(p.EquivalenceClass, p.NodesGeneration)
	x.states.EnterRetryOrder(p, &x.m.Pending.AheadOnly)
	if _, due := x.m.PreemptionQueue.When(p.Asker); !due {
		x.states.Arm(p, p.Asker.RetryAt)
	}
	if p.RequiredNode != "" {
		from, _ := p.PlanFrom()
		if from = preemption.Latest(from, p.Asker.RetryAt); from.After(now) {
			x.states.BackOff(p, from)
		}
		x.plans.RecheckNode(p)
		x.states.RetryTooEarly(p, now)
	}
}

// Defer makes a pod back off because another plugin refused to try it. With SchedulingGated, that
// plugin keeps the pod out of the scheduler's queue: the pod was not tried (D0), and may have come
// back before this call (Gate), or have passed no gate at all. A foreign pod counts as tried, because
// nothing tells the store when that plugin releases it.
func (x *Cycle) Defer(uid types.UID, why reasons.Reason, now time.Time) {
	p, gated := x.m.Pods[uid], why.Code == reasons.SchedulingGated
	if !gated || p != nil && p.Foreign {
		x.m.Freed(x.m.Preemption.NodeBound.Tried(uid, now))
	}
	switch {
	case !gated || p == nil:
	case !p.State.HasSlot():
		return
	case p.State == state.Admitted:
		x.begin(p) // it ends at once
	}
	if p = x.ends(uid, now); p == nil {
		return
	}
	x.m.Pending.Classes.Leave(&p.EquivalenceClass, p.State)
	x.states.ToUnschedulable(p, why, now)
	if gated {
		p.BackoffEnds = now
	} else {
		x.states.BackOff(p, p.BackoffEnds)
	}
	x.states.KeepArmed(p)
}

// Assume is the binding verdict on a pod that found a node. It charges the pod, unless a
// quota refuses it or pods that go before it need the room.
func (x *Cycle) Assume(uid types.UID, node string, seen int, now time.Time) queues.Verdict {
	p, known := x.m.Pods[uid]
	switch {
	case !known:
		return model.Refused(reasons.New(reasons.Starting, "the pod is gone"))
	case p.App == nil:
		return model.Refused(x.states.Explain(p))
	case p.State.HasNode():
		return queues.Granted // it was bound during its cycle; the result of the bind decides
	}
	v := x.states.CheckGroup(p)
	if v.OK() {
		v = x.m.CheckPodQuota(p, p.Basis())
	}
	if !v.OK() {
		if p.Asker.HoldsNode() {
			x.holds.FailedHolder(p, now)
		} else {
			x.states.RequeueRefused(p)
			x.demand.FoundNoNode(p, now) // the scheduler is about to write that it wants a node
		}
		return v
	}
	if h, ok := x.m.Preemption.Ledger.Of(uid); ok && h.Node != node {
		// It fits elsewhere, and no victim was deleted yet. The order decides whether it gets that room.
		why := reasons.New(reasons.HoldSuperseded, "the pod found room on node %s", node)
		x.holds.FinishHold(p, preemption.Ending{End: reservations.Superseded, Node: node, Why: why}, now)
	}
	if x.slots.GiveWay(p, node, seen, now) {
		x.demand.FoundNoNode(p, now)
		return model.Refused(reasons.New(reasons.InOrder, "pods that are before it may run again"))
	}
	x.assume(p, node, now)
	return queues.Granted
}

// assume charges a pod as allocated on a node after all checks.
func (x *Cycle) assume(p *model.Pod, node string, now time.Time) {
	x.m.Pending.Classes.Placed(p.EquivalenceClass)
	x.states.ToAllocated(p, state.Assumed, node, now)
	if p.RequiredNode != "" {
		x.holds.Supersede(p.On(), now)
	}
	x.holds.WakeHolders(node, p.UID, now)
	x.m.Pending.Window.Placed()
}

// Forget takes back Assume. The pod backs off, and the latest event during its bind takes
// effect. The cycle counts as one that ended with an error: the pod comes back by itself, and
// no plan is made for it before that.
func (x *Cycle) Forget(uid types.UID, now time.Time) {
	p, known := x.m.Pods[uid]
	if !known || p.State != state.Assumed {
		return
	}
	node, why := p.Node, whyForgotten(x.m.Preemption.Ledger, p)
	x.states.LeaveAllocated(p)
	p.Node = ""
	x.m.Charge(p, p.Request, cache.Pending)
	x.m.Pending.Window.Failed()
	x.states.ToUnschedulable(p, why, now)
	x.m.Recharge(p)
	p.OnlyTimeHelps, p.Asker.RetryAt = true, preemption.Latest(p.Asker.RetryAt, p.BackoffEnds)
	x.states.BackOff(p, p.BackoffEnds)
	x.demand.Read(p) // PodScheduled is from before the pod had a node
	x.states.KeepArmed(p)
	x.m.Preemption.Ledger.SetPlaced(p.UID, false)
	x.holds.Gone(uid, node, now)
	x.m.History.Reports.Look(p.Report, now.Add(history.Soon))
	if late := p.LateEvent; late != nil {
		p.LateEvent = nil
		x.life.Apply(late, now)
	}
	if x.m.Pods[uid] == p && p.State == state.BackingOff && !x.m.Cache.Tree().Queue(p.App.Leaf).Leaf {
		x.life.Unplace(p, now)
		x.life.Place(p, now)
	}
}

// whyForgotten is why an assumed pod is not bound to its node. A member of a PodGroup gives
// its place back when another member finds none, or waits too long on the node that it
// holds. No pod is bound on a node that is held for another pod by that time.
func whyForgotten(held *preemption.Ledger, p *model.Pod) reasons.Reason {
	node := p.Node
	if p.GroupIncomplete() {
		if why := whyWithoutPlace(held, p); why != "" {
			return reasons.New(reasons.PodGroupIncomplete, "PodGroup %s: the pod gave back its place on node %s, because %s", p.PodGroup.Name(), node, why)
		}
	}
	if pass := held.MayUse(node, reservations.Pod{UID: p.UID, Namespace: p.Namespace, Group: p.GroupInHolds(), Required: p.RequiredNode == node}); !pass.OK && pass.Holder.Asker != p.UID {
		return reasons.New(reasons.NodeHeld, "node %s was held for pod %s/%s while the pod was placed there", node, pass.Holder.Namespace, pass.Holder.Name)
	}
	return reasons.New(reasons.BackingOff, "a step after the choice of a node failed")
}

// whyWithoutPlace says which other member of a pod's group has no place, and why: the first
// one, by name, that found no node, else the first that holds a node. Where there is none,
// it says how many members had a place, if these were too few for the group to start.
func whyWithoutPlace(held *preemption.Ledger, p *model.Pod) string {
	var failed, holder *model.Pod
	for _, m := range p.PodGroup.Members() {
		switch {
		case m == p || m.State.HasNode():
		case m.Asker.HoldsNode():
			holder = firstByName(holder, m)
		case m.State.WaitsForNode() && m.Reason.Code != reasons.BackingOff && m.Reason.Code != reasons.PodGroupIncomplete:
			failed = firstByName(failed, m)
		}
	}
	switch placed, least := p.PodGroup.Placed(), p.PodGroup.Min(); {
	case failed != nil:
		return fmt.Sprintf("pod %s found no node: %s", failed.Name, failed.Reason.Text)
	case holder == nil && placed < least:
		return fmt.Sprintf("only %d of the %d pods that start together had one", placed, least)
	case holder == nil:
		return ""
	}
	h, _ := held.Of(holder.UID)
	return fmt.Sprintf("pod %s waits for its place on node %s, which it holds; pods still to leave for it: %d", holder.Name, h.Node, len(h.Awaited))
}

func firstByName(a, b *model.Pod) *model.Pod {
	if a == nil || b.Name < a.Name {
		return b
	}
	return a
}

// NodeRefuses ends the hold of a node that the filters refuse whichever pods leave it.
func (x *Cycle) NodeRefuses(uid types.UID, node, why string, now time.Time) {
	p := x.m.Pods[uid]
	if h, ok := x.m.Preemption.Ledger.Of(uid); ok && h.Node == node && !h.NodeBound {
		reason := reasons.New(reasons.HoldNodeUnschedulable, "node %s cannot take the pod any more: %s", node, why)
		x.holds.EndHold(p, reservations.NodeUnschedulable, reason, now)
	}
}

// ComeBack makes an unschedulable pod back off for a short time, so that it is tried again. It is
// not tried earlier, because no event happened, but GiveWay counts it, so room goes to it first.
func (x *Cycle) ComeBack(uid types.UID, now time.Time) {
	p, known := x.m.Pods[uid]
	if !known || p.State != state.Unschedulable {
		return
	}
	x.states.BackOff(p, preemption.Latest(p.BackoffEnds, now.Add(preemption.AtMostEvery)))
	if p.App != nil {
		x.states.EnterRetryOrder(p, &x.m.Pending.AheadOnly)
	}
}
