package record

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Planned renders a decision that is not put into force, as if it had been made at a
// time: of queue preemption or, where that is nil, about the only node a pod can run on.
// Types are those of its amounts.
func Planned(asker objects.Ref, queue string, d *planner.Decision, r *daemonset.Decision, types []string, now time.Time) *Decision {
	step := output.Step{Ref: asker, Queue: queue, At: now, Types: types, Kind: output.StepHeld, Decision: d, NodeBoundDecision: r}
	if d != nil && d.Outcome == planner.Refuse {
		step.Kind, step.Reason = output.StepRefused, output.Refusal(d)
	}
	if r != nil && (r.Outcome == daemonset.NoHold || r.Outcome == planner.Refuse) {
		code := reasons.RoomImpossible
		if r.Stopped == planner.RuleExtender {
			code = reasons.PreemptionRefused
		}
		step.Kind, step.Reason = output.StepRefused, reasons.New(code, "%s", r.Sentence())
	}
	if r != nil {
		step.Hold = reservations.Hold{Node: r.Node, NodeBound: true}
	}
	out := decisionOf(&step)
	out.ID, out.Stages = "", []Stage{}
	return out
}
