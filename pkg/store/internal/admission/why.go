package admission

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Explain returns why a pod is in its state; none for pods that were let through.
func (x *States) Explain(p *model.Pod) reasons.Reason {
	why := x.Last(p)
	switch {
	case refusedByQuota(p):
		// The verdict may be old; users want the current numbers.
		if latest := x.m.CheckPodQuota(p, queues.OnAllocated); latest.Reason.Code == why.Code {
			return latest.Reason
		}
	case p.State == state.Queued && !p.HeldByClass():
		return reasons.New(reasons.InOrder, "queue %s: pods that wait for their turn in the queue: %d",
			x.m.Cache.Tree().Queue(p.App.Leaf).Path, x.m.Pending.Order.EligibleAt(p.App.Leaf))
	case p.State == state.BackingOff && why.Text == "" && p.Failed.Attempts() == 0:
		return reasons.New(reasons.BackingOff, "the pod is tried again after a pause: %s", p.Reason.Text)
	case p.State == state.BackingOff && why.Text == "":
		return reasons.New(reasons.BackingOff, "the pod failed %s and is tried again after its back-off; the last time: %s",
			times(p.Failed.Attempts()), p.Reason.Text)
	}
	return why
}

// refusedByQuota tells whether a pod waits because a quota refused its group of the order.
func refusedByQuota(p *model.Pod) bool {
	return p.State == state.Queued && !p.HeldByClass() && !p.Ask.Group().Verdict().OK()
}

// Last is Explain without a new quota check (it has the last verdict), and without the texts of
// Explain for Queued and BackingOff.
func (x *States) Last(p *model.Pod) reasons.Reason {
	switch {
	case p.State == state.NoQueue && !x.m.Started:
		return x.m.NotStarted()
	case p.State == state.NoQueue:
		return p.Reason
	case refusedByQuota(p):
		return p.Ask.Group().Verdict().Reason
	case p.State == state.GroupBlocked:
		return p.PodGroup.Why()
	case p.State == state.BackingOff && !p.Asker.HoldsNode() && p.BeyondQuota().None():
		return reasons.Reason{Code: reasons.BackingOff}
	case p.State.WaitsForNode(), p.HeldByClass(): // its cycle found no node, and since then a pod of its class found none
		return p.Stopped()
	case p.State == state.Queued:
		return reasons.Reason{Code: reasons.InOrder}
	}
	return reasons.Reason{}
}

// CauseOf is the cause of the reason that Last returns for the pod.
func (x *States) CauseOf(p *model.Pod) history.Cause {
	switch why := x.Last(p); {
	case p.State == state.NoQueue:
		return history.CauseOfSentence(why.Text)
	case refusedByQuota(p):
		return history.CauseOfVerdict(why.Text)
	}
	return history.CauseOfSentence("")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
