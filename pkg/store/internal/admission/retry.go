package admission

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// BringBackWaiting brings back all pods that wait for room on a node. It visits all pods, so it
// runs at most once a second, for all pods that freed room unseen in that second.
func (x *States) BringBackWaiting(now time.Time) {
	if !x.m.Pending.FreedUnseen.Tick(now) {
		return
	}
	var waiting []*model.Pod
	for _, p := range x.m.Pods {
		if p.State == state.Unschedulable {
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, model.CompareUID)
	for _, p := range waiting {
		x.bringBack(p, now)
	}
}

// bringBack does for an unschedulable pod what the scheduler's queue does after an event that may
// help it. A node-bound pod that watches its node is skipped: changes of that node bring it back.
func (x *States) bringBack(p *model.Pod, now time.Time) {
	switch {
	case p.State != state.Unschedulable, p.RequiredNode != "" && x.m.Preemption.Watches.Has(p.UID):
	case p.Foreign || p.Asker.HoldsNode():
		x.BackOff(p, preemption.Latest(p.BackoffEnds, now))
	default:
		x.Requeue(p, now)
	}
}

// RetryTooEarly brings back a pod that tried to preempt too early. A pod of a queue that is
// still in its cycle is brought back when that cycle has failed.
func (x *States) RetryTooEarly(p *model.Pod, now time.Time) {
	mayAsk := p.Foreign && model.MayAskForeign(p.Pod) || p.App != nil && p.RequiredNode != "" && p.State == state.Unschedulable
	if x.m.Started && !x.m.Standby && mayAsk && x.m.Pending.TooEarly.Take(p.UID) {
		x.ReturnBy(p, now)
	}
}

// RetryAllTooEarly calls RetryTooEarly for all pods when the store starts or begins to lead.
func (x *States) RetryAllTooEarly(now time.Time) {
	for _, uid := range x.m.Pending.TooEarly.UIDs() {
		if p, ok := x.m.Pods[uid]; ok {
			x.RetryTooEarly(p, now)
		}
	}
}

// A retry order has pods that found no node. Pending.RetryEarly has those that back off and
// that an event since may help; Pending.AheadOnly has unschedulable ones and those of
// Cycle.ComeBack.
//
// While other pods can be admitted, back-off keeps the pods of RetryEarly from being tried
// at every such event. When no other pod can be admitted, it would leave freed room unused,
// or give it to the first pod that ends its back-off. So the first of these pods is admitted
// then, and the next one after that cycle. The scheduler's queue does the same.

// EnterRetryOrder puts a backing-off or unschedulable pod into a retry order.
func (x *States) EnterRetryOrder(p *model.Pod, in *order.Sparse) {
	p.RetryIn = in
	p.RetryAsk = in.Push(x.m.Cache.Tree(), p.App.Ordered, p.AskKey(), p.Request)
}

// RetryFirst moves the first backing-off pod into the order if no pod is admitted. The
// order has no other pod that can go on at that time.
func (x *States) RetryFirst() bool {
	if x.m.Pending.Window.Taken() > 0 {
		return false
	}
	ask, ok := x.m.Pending.RetryEarly.Next()
	if !ok {
		return false
	}
	p := x.m.Pods[types.UID(ask.UID())]
	x.ToQueued(p)
	return true
}

// preemption.Queue has the time of the next check of each pod. Package plans makes the
// checks.

// Arm schedules a check of a pod at a time, but not before its delay has ended.
func (x *States) Arm(p *model.Pod, at time.Time) {
	if p.App == nil || p.State.HasNode() || p.Asker.HoldsNode() || p.NeverPreempts || p.RequiredNode != "" {
		return // node-bound pods: see plans.BeginNodeBoundPlan
	}
	if end := p.DelayEnd(x.m.Cache.Tree()); at.Before(end) {
		at = end
	}
	x.m.PreemptionQueue.Arm(p.Asker, at)
}

// KeepArmed arms a pod unless a check of it is already due.
func (x *States) KeepArmed(p *model.Pod) {
	if !x.IsArmed(p) {
		x.Arm(p, p.Asker.RetryAt)
	}
}

// IsArmed tells whether a check of a pod is due, queued or triggered by a watch.
func (x *States) IsArmed(p *model.Pod) bool {
	return x.m.PreemptionQueue.Waits(p.Asker) || x.m.Preemption.Watches.Has(p.UID)
}

// Disarm ends all checks of a pod: it is gone, has a node, or has a hold.
func (x *States) Disarm(p *model.Pod) {
	x.m.PreemptionQueue.Leave(p.Asker)
	x.m.Preemption.Watches.Remove(p.UID)
	x.m.StopWaiting(p)
}

// LetThrough gives a pod a slot, whatever the window and the order say, and has the scheduler
// try it. A foreign pod has no slot: it is only activated.
func (x *States) LetThrough(p *model.Pod, now time.Time) {
	if p.Foreign {
		p.Asker.Activated = true
		x.EndCycle(p)
	} else {
		x.takeSlot(p, now)
	}
	x.m.Out.Activate = append(x.m.Out.Activate, p.Ref())
}
