package plans

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// AcceptPlan begins the hold that a plan asks for.
func (x *Plans) AcceptPlan(uid types.UID, d *planner.Decision, now time.Time) reasons.Reason {
	x.Preemption.Watches.PlanEnds()
	p, known := x.Pods[uid]
	if !known || p.App == nil {
		return reasons.Brief(reasons.Starting)
	}
	why := x.accept(p, d, now)
	if !why.None() {
		x.EnterStep(p, output.Step{Kind: output.StepRefused, Decision: d, Reason: why}, now)
	}
	return why
}

// accept is AcceptPlan for a pod of a queue.
func (x *Plans) accept(p *model.Pod, d *planner.Decision, now time.Time) reasons.Reason {
	switch {
	case p.State.HasNode():
		return reasons.New(reasons.HoldGivenUp, "the pod has a node by now")
	case p.Asks.Holds():
		h, _ := x.Preemption.Holds.Of(p.UID)
		return preemption.MakingRoom(&h)
	case x.holds.MayNotHold(p):
		return holds.NotLeading()
	}
	if _, why := x.Cache.Nodes.Unusable(d.Node); !why.None() {
		return why
	}
	chosen, why := x.holds.StillThere(d.Chosen())
	if !why.None() {
		return why
	}
	if at := x.Preemption.VictimsFrom(len(chosen), now); at.After(now) {
		x.History.Say(p, reasons.PreemptionPaced, now.Add(x.Preemption.RetryInterval))
		x.states.Arm(p, at)
		return x.Preemption.RoundIsFull()
	}
	going := make([]*model.Pod, 0, len(chosen))
	for _, uid := range chosen {
		going = append(going, x.Pods[uid])
	}
	byFilters := uidsOf(x.holds.Idle(p, x.Cache.Nodes.Get(d.Node), going))
	since := model.Latest(now, p.Asks.Ended.Add(1)) // distinguishes it from an earlier hold
	h := reservations.Hold{Node: d.Node, Since: since, Chosen: chosen, Decision: preemption.DecisionID(p.UID, since)}
	if err := x.holds.PlaceHold(p, h); err != nil {
		return reasons.New(reasons.HoldGivenUp, "%v", err)
	}
	x.Preemption.VictimsChosen(len(chosen), now)
	p.Asks.Decision, p.Asks.ByFilters = d, byFilters
	p.Sweeping().Restart()
	placed, _ := x.Preemption.Holds.Of(p.UID)
	x.EnterStep(p, output.Step{Kind: output.StepHeld, Hold: placed, Decision: d, Reason: p.Reason}, now)
	x.ToWrite(output.Work{Ref: p.Ref(), Kind: output.WorkDisrupt, Hold: placed, Decision: d})
	return reasons.Reason{}
}

// VictimsDeleted lets the preemptor through if its node has room already.
func (x *Plans) VictimsDeleted(asker types.UID, now time.Time) {
	if p := x.Pods[asker]; p != nil {
		h, ok := x.Preemption.Holds.Of(asker)
		if ok {
			x.EnterStep(p, output.Step{Kind: output.StepDisrupted, Hold: h}, now)
		}
		if ok && h.Patient {
			return // it has its own deadline, or waits for a change of its node
		}
		x.holds.WakeHolder(p, now)
	}
}

// FailPlan ends the hold of a plan that could not be carried out.
func (x *Plans) FailPlan(asker types.UID, why reasons.Reason, now time.Time) {
	if p := x.Pods[asker]; p != nil {
		x.holds.FinishHold(p, preemption.Ending{End: reservations.GivenUp, Node: p.Node, Why: why, Failed: true}, now)
	}
}

// uidsOf returns the UIDs of pods.
func uidsOf(pods []*model.Pod) []types.UID {
	var out []types.UID
	for _, p := range pods {
		out = append(out, p.UID)
	}
	return out
}
