package model

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// DelayEnd is when the preemption delay of the pod's leaf ends (P1).
func (p *Pod) DelayEnd(tree *queues.Draft) time.Time {
	return p.Created.Add(tree.Queue(p.App.Leaf).Policies.PreemptionDelay)
}

// Sweeping returns the sweep of a pod, shared by its equivalence class.
func (p *Pod) Sweeping() *preemption.Sweep {
	if p.EquivalenceClass != nil {
		return (*preemption.Sweep)(&p.EquivalenceClass.Sweep)
	}
	return &p.Asks.Sweep
}

// MayAsk tells whether law 4 can be met for a pod.
func (x *Model) MayAsk(p *Pod) bool {
	return x.Cache.Books.BelowGuarantee(p.App.Leaf, p.Request, x.Preemption.StrictGuarantee)
}

// LastRefused returns when and why a plan for the pod, or for another pod of its
// equivalence class, failed.
func (p *Pod) LastRefused() (at time.Time, why reasons.Reason) {
	at, why = p.Asks.TriedAt, p.Asks.Refused
	if t := p.EquivalenceClass; t != nil && t.TriedAt.After(at) {
		at, why = t.TriedAt, t.Refused
	}
	return at, why
}

// PlanFrom returns when the next plan for a pod may be made after a loss, and the reason
// given to users until then. Its code is never that of a quota: the pod waits for a time,
// and a pod that a quota refuses is tried again as soon as the quota has room.
func (p *Pod) PlanFrom() (time.Time, reasons.Reason) {
	l := &p.Asks.Losses
	if p.GroupIncomplete() && p.PodGroup.Data.Losses.Until.After(l.Until) {
		l = &p.PodGroup.Data.Losses
	}
	why := l.Why
	if why.Code.IsQuota() {
		why.Code = reasons.HoldGivenUp
	}
	return l.Until, why
}

// Lingers tells whether a deleted pod that is no victim of a plan in force may stay
// longer than a hold lasts. No plan counts on its room.
func (p *Pod) Lingers(holdTimeout time.Duration) bool {
	return p.Deleting && p.ChosenBy == "" && p.DeletionGrace > holdTimeout
}
