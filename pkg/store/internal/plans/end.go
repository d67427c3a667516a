package plans

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// VictimsDeleted lets the asker through if its node has room already.
func (x *Plans) VictimsDeleted(asker types.UID, now time.Time) {
	h, ok := x.m.Preemption.Ledger.Of(asker)
	if !ok {
		return
	}
	p := x.m.Pods[asker]
	x.m.EnterStep(p, output.Step{Kind: output.StepVictimsDeleted, Hold: h}, now)
	if !h.Patient() { // else it has its own deadline, or waits for a change of its node
		x.holds.WakeHolder(p, now)
	}
}

// VictimsRefused notes that the API server refused to delete victims: they cannot be chosen
// again for a while, counted from the time from. The plan may go on.
func (x *Plans) VictimsRefused(refused []output.Undeletable, from time.Time) {
	for _, r := range refused {
		if v := x.m.Pods[r.UID]; v != nil {
			x.m.Preemption.Undeletable.Refuse(r.UID, r.Why, &x.m.Preemption.Options, from)
			x.m.TouchPod(v)
		}
	}
}

// FailPlan ends the hold of a plan that could not be carried out. Victims that the API server
// refused to delete are excluded for a while, counted from when the asker may be planned for
// again. Otherwise its next plan would choose them.
func (x *Plans) FailPlan(asker types.UID, why reasons.Reason, refused []output.Undeletable, now time.Time) {
	from := now
	if p := x.m.Pods[asker]; p != nil {
		x.holds.FinishHold(p, preemption.Ending{End: reservations.GivenUp, Node: p.Node, Why: why, Failed: preemption.CallFailed}, now)
		until, _ := p.PlanFrom()
		from = preemption.Latest(now, until)
	}
	x.VictimsRefused(refused, from)
}

// AbortPlan keeps the victims of a node-bound pod that were not deleted. The node stays held.
func (x *Plans) AbortPlan(asker types.UID, why reasons.Reason, now time.Time) {
	if h, ok := x.m.Preemption.Ledger.Of(asker); ok && h.NodeBound {
		x.abortPlan(x.m.Pods[asker], &h, reasons.New(reasons.RoomAwaited, "node %s is held for the pod; %s", h.Node, why.Text), now)
	}
}

// decidedAgain is the Note of a node-bound hold without a plan: the plan was called off, or the
// process has just started.
const decidedAgain = "it is decided again which pods go, if any"

// abortPlan keeps the chosen victims that were not deleted. why is the reason that the
// asker waits.
func (x *Plans) abortPlan(p *model.Pod, h *reservations.Hold, why reasons.Reason, now time.Time) {
	left := x.holds.Left(h)
	chosen := slices.DeleteFunc(slices.Clone(h.Chosen), func(uid types.UID) bool { return slices.Contains(left, x.m.Pods[uid]) })
	x.holds.Rechoose(p, reservations.Hold{Chosen: chosen, Note: decidedAgain, Decision: x.newDecisionID(p, now)}, now)
	x.queueWrite(p, output.WorkRecord, now)
	x.states.ReturnBy(p, preemption.Latest(now, p.Asker.TriedAt.Add(preemption.AtMostEvery)))
	if p.State.WaitsForNode() {
		p.Reason = why
	}
}
