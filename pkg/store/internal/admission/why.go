package admission

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Explain returns why a pod is in its state; none for pods that were let through.
func (x *States) Explain(p *model.Pod) reasons.Reason {
	switch p.State {
	case state.NoQueue:
		if !x.Started {
			return x.NotStarted()
		}
		return p.Reason
	case state.Queued:
		if p.HeldByClass() {
			return p.Stopped() // its cycle found no node, and since then a pod of its class found none
		}
		if v := p.Ask.Group().Verdict(); !v.OK() {
			// The verdict may be old; users want the current numbers.
			if latest := x.Cache.Books.CheckQuota(&p.App.CacheApp, p.Request, queues.OnAllocated); latest.Reason.Code == v.Reason.Code {
				return latest.Reason
			}
			return v.Reason
		}
		return reasons.New(reasons.InOrder, "queue %s: pods that wait for their turn in the queue: %d",
			x.Cache.Tree().Queue(p.App.Leaf).Path, x.Pending.Order.EligibleAt(p.App.Leaf))
	case state.GroupBlocked:
		return p.PodGroup.Why(objects.PodGroupLabel)
	case state.Unschedulable:
		return p.Stopped()
	case state.BackingOff:
		if p.Asks.Holds() || !p.Beyond.None() {
			return p.Stopped()
		}
		return reasons.New(reasons.BackingOff, "the pod failed %s and is tried again after its back-off; the last time: %s", times(p.Failed.Attempts()), p.Reason.Text)
	}
	return reasons.Reason{}
}

// Code is the code of Explain, without the text.
func (x *States) Code(p *model.Pod) reasons.Code {
	switch p.State {
	case state.NoQueue:
		if !x.Started {
			return x.NotStarted().Code
		}
		return p.Reason.Code
	case state.Queued:
		if p.HeldByClass() {
			return p.Stopped().Code
		}
		if v := p.Ask.Group().Verdict(); !v.OK() {
			return v.Reason.Code
		}
		return reasons.InOrder
	case state.GroupBlocked:
		return p.PodGroup.Code()
	case state.Unschedulable:
		return p.Stopped().Code
	case state.BackingOff:
		if p.Asks.Holds() || !p.Beyond.None() {
			return p.Stopped().Code
		}
		return reasons.BackingOff
	}
	return ""
}

// CauseOf is the cause of the reason that Explain returns for the pod. It uses the last
// verdict and does not check quotas again.
func (x *States) CauseOf(p *model.Pod) history.Cause {
	switch p.State {
	case state.NoQueue:
		if !x.Started {
			return history.CauseOfSentence(x.NotStarted().Text)
		}
		return history.CauseOfSentence(p.Reason.Text)
	case state.Queued:
		if p.HeldByClass() { // it has no group in the order, and no report
			return history.CauseOfSentence("")
		}
		if v := p.Ask.Group().Verdict(); !v.OK() {
			return history.CauseOfVerdict(v.Reason.Text)
		}
	}
	return history.CauseOfSentence("")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
