package plans

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Plans decides about plans. Make one with New.
type Plans struct {
	m      *model.Model
	states *admission.States
	holds  *holds.Holds
}

// New returns the plans for the askers of a model.
func New(m *model.Model, states *admission.States, held *holds.Holds) *Plans {
	return &Plans{m, states, held}
}

// asker returns the pod that a plan is about, or why no plan is made or put into force
// for it: it is gone, it has a node, or this process does not lead.
func (x *Plans) asker(uid types.UID) (*model.Pod, reasons.Reason) {
	p, known := x.m.Pods[uid]
	switch {
	case !known || !x.m.Started:
		return nil, reasons.Brief(reasons.Starting)
	case p.App == nil && !p.Foreign:
		return nil, x.states.Explain(p)
	case p.State.HasNode():
		return p, reasons.Reason{Code: reasons.InOrder, Text: "the pod has a node"}
	case x.m.Standby && !p.Asker.HoldsNode():
		// The scheduler may take a pod before the store learns that this process leads. A
		// hold made then would not be written.
		return p, reasons.New(reasons.Starting, "this process does not lead yet: it makes no room")
	}
	return p, reasons.Reason{}
}

// BeginPlan begins a plan: it returns the input, or why no plan is made now. First a pod with a
// slot joins its equivalence class, and its hold ends if other pods took the room. It notes the
// time of the plan, and from now on which queues and nodes change (Watches.PlanBegins).
func (x *Plans) BeginPlan(uid types.UID, class string, inPermit []types.UID, now time.Time) (*output.PlanInput, reasons.Reason) {
	p, why := x.asker(uid)
	if !why.None() {
		return nil, why
	}
	if v := x.states.CheckGroup(p); !v.OK() {
		return nil, v.Reason
	}
	if p.State.HasSlot() && !p.GroupIncomplete() {
		x.m.Pending.Classes.Join(&p.EquivalenceClass, p.App.Ordered, p.Request, class, p.State)
	}
	if taken := x.holds.Taken(p); !taken.None() && x.Never(p).None() {
		x.holds.EndHold(p, reservations.Superseded, taken, now) // the pod needs a new plan
	}
	if why, from := x.WhyNotNow(p, now); !why.None() {
		x.deferPlan(p, why, from, now)
		return nil, why
	}
	x.holds.SetInPermit(p, inPermit)
	p.Asker.TriedAt, p.Asker.NoRoom = now, false
	x.m.Preemption.Watches.PlanBegins()
	ask := model.AskOf(&x.m.Preemption.Snapshot.Types, p) // before the snapshot: it may add a resource type
	ask.Group = x.groupFor(p, nil)
	snapshot := x.m.PlanningSnapshot()
	snapshot.Nodes = p.Sweeping().Rest(x.BesideWaiting(p, snapshot.Nodes))
	return &output.PlanInput{Ask: ask, Snapshot: snapshot, Params: x.Params()}, reasons.Reason{}
}

// Params returns the settings of plans, without the filters.
func (x *Plans) Params() planner.Params {
	return planner.Params{StrictGuarantee: x.m.Preemption.StrictGuarantee}
}

// BesideWaiting returns the nodes as a plan for an asker sees them, beside the pods that wait for
// their room ([model.Model.WaitingBefore]).
func (x *Plans) BesideWaiting(p *model.Pod, nodes []*planner.Node) []*planner.Node {
	waiting := x.m.WaitingBefore(p)
	if len(waiting) == 0 {
		return nodes
	}
	out := slices.Clone(nodes)
	for i, n := range out {
		if request, waits := waiting[n.Name]; waits {
			beside, taken := *n, x.m.Preemption.Snapshot.Amounts(request)
			beside.Free = slices.Clone(n.Free)
			for t, free := range n.Free { // they wait for free room only
				beside.Free[t] = int64(resources.Amount(free).SubFree(resources.Amount(taken.At(t))))
			}
			out[i] = &beside
		}
	}
	return out
}

// deferPlan notes why no plan is made for a pod now, and arms the pod for the time from
// which one may be made.
func (x *Plans) deferPlan(p *model.Pod, why reasons.Reason, from, now time.Time) {
	if why.Code.IsQuota() {
		p.Asker.RefusalEndsCycle = true
	}
	if why.Code.IsQuota() || !x.Never(p).None() {
		x.m.StopWaiting(p)
	}
	if !from.IsZero() {
		if why.Code != reasons.PreemptionPaced {
			p.Asker.RetryAt = from
		}
		x.states.Arm(p, from)
	}
	x.m.History.NotePlanResult(p, why.Code, now.Add(x.m.Preemption.RetryInterval))
}

// Never returns why no plan is ever made for a pod under the current configuration.
func (x *Plans) Never(p *model.Pod) reasons.Reason {
	switch {
	case p.NeverPreempts:
		return reasons.New(reasons.PreemptionNever, "its preemptionPolicy is Never")
	case !x.m.Cache.Spec.PreemptionEnabled:
		return reasons.New(reasons.PreemptionDisabled, "queues do not preempt: the partition has preemption.enabled: false")
	}
	return cache.NotOffered(p.Pod)
}

// WhyNotNow returns the first reason why no plan is made for a pod now, and from when one
// may be made; zero if time does not decide that.
func (x *Plans) WhyNotNow(p *model.Pod, now time.Time) (why reasons.Reason, from time.Time) {
	h, held := x.m.Preemption.Ledger.Of(p.UID)
	leaf, delayEnd := x.m.Cache.Tree().Queue(p.App.Leaf), p.DelayEnd(x.m.Cache.Tree())
	never, limits := x.Never(p), x.m.CheckPodLimits(p)
	lossEnd, lost := p.PlanFrom()
	tried, refused := p.LastRefused()
	round, paid := x.m.Preemption.VictimsFrom(1, now), x.m.Preemption.Limiter.PlansFrom(now)
	switch {
	case !never.None():
		return never, time.Time{}
	case held:
		return preemption.MakingRoom(&h), time.Time{}
	case delayEnd.After(now) && !x.m.MeetsLaw4(p): // no check of the pod follows the end of the delay
		return Law4Refusal(leaf), time.Time{}
	case delayEnd.After(now):
		return reasons.New(reasons.PreemptionDelayed, "queue %s preempts for pods that waited for %v, this one in %v",
			leaf.Path, leaf.Policies.PreemptionDelay, timeLeft(delayEnd, now)), time.Time{}
	case !limits.OK():
		return limits.Reason, time.Time{}
	case lossEnd.After(now):
		return lost, lossEnd
	case !refused.None() && tried.Add(preemption.AtMostEvery).After(now):
		return refused, tried.Add(preemption.AtMostEvery)
	case round.After(now):
		return x.m.Preemption.RoundIsFull(), round
	case paid.After(now):
		return reasons.New(reasons.PreemptionPaced,
			"failed plans for other pods have used up the planning time; this pod is planned for when the limit allows it"), paid
	}
	return reasons.Reason{}, time.Time{}
}

// Law4Refusal is the refusal of an asker in a queue that already has its guarantee.
func Law4Refusal(leaf *queues.Queue) reasons.Reason {
	return reasons.New(reasons.PreemptionRefused, "neither queue %s nor one above it is below its guarantee in what the pod requests (law 4)", leaf.Path)
}

// timeLeft is the time left until a given time, rounded for messages.
func timeLeft(until, now time.Time) time.Duration {
	d := until.Sub(now)
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// setWaiting notes whether an asker waits for room of a node ([preemption.Preemption.Waiting]).
func (x *Plans) setWaiting(p *model.Pod, node string, waits bool) {
	if old, waited := x.m.Preemption.Waiting[p.UID]; waited && waits && old.Node == node {
		return
	}
	x.m.StopWaiting(p)
	if waits {
		x.m.Preemption.Waiting[p.UID] = preemption.Waiting{Node: node, Since: p.Asker.TriedAt}
	}
}
