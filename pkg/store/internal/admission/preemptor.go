package admission

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// When a pod is checked for preemption is in the preemption queue (preemption.Queue). The
// checks are in package plans.

// Arm schedules a check of a pod at a time, but not before its delay has ended.
func (x *States) Arm(p *model.Pod, at time.Time) {
	if p.App == nil || p.State.HasNode() || p.Asks.Holds() || p.NeverPreempts || p.RequiredNode != "" {
		return // pods that require a node: see plans.AttemptNodeBound
	}
	if end := p.DelayEnd(x.Cache.Tree()); at.Before(end) {
		at = end
	}
	x.Asking.Arm(p.Asks, at)
}

// KeepAsking arms a pod unless a check of it is already due.
func (x *States) KeepAsking(p *model.Pod) {
	if !x.WillAsk(p) {
		x.Arm(p, p.Asks.RetryAt)
	}
}

// WillAsk tells whether a check of a pod is due, queued or triggered by a watch.
func (x *States) WillAsk(p *model.Pod) bool {
	return x.Asking.Waits(p.Asks) || x.Preemption.Watches.Has(p.UID)
}

// Disarm ends all checks of a pod: it is gone, has a node, or has a hold.
func (x *States) Disarm(p *model.Pod) {
	x.Asking.Leave(p.Asks)
	x.Preemption.Watches.Remove(p.UID)
	x.Preemption.NodeBound.Await(p.UID, false)
}

// LetThrough admits a stuck pod regardless of the window and the order.
func (x *States) LetThrough(p *model.Pod, now time.Time) {
	if p.Foreign {
		p.Asks.Activated = true
		x.EndCycle(p)
		x.Out.Activate = append(x.Out.Activate, p.Ref())
		return
	}
	x.Withdraw(p)
	x.admit(p, now)
	x.Out.Activate = append(x.Out.Activate, p.Ref())
}
