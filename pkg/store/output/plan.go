package output

import (
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// PlanInput is the input of a plan for a pod. It is immutable.
type PlanInput struct {
	Snapshot *planner.Snapshot
	Ask      *planner.Ask
	// Params does not have the filters.
	Params planner.Params
}

// NodeBoundPlanInput is the input of a decision for a node-bound pod.
type NodeBoundPlanInput struct {
	Node *daemonset.Node
	// Before are the pods that are served before the asker, in the order of
	// Node.Before.
	Before []objects.Ref
	Ask    *daemonset.Ask
	// Params does not have the filters.
	Params daemonset.Params
}

// Refusal is why a plan failed, for a decision with outcome [planner.Refuse].
func Refusal(d *planner.Decision) reasons.Reason {
	if d.GroupShortage != nil {
		return reasons.New(reasons.PodGroupBeyondGuarantee, "%s", d.Sentence())
	}
	return reasons.New(reasons.PreemptionRefused, "%s", d.Sentence())
}

// NodeBoundRefusal is why the node of a node-bound pod is not held for it, for a decision with
// outcome [daemonset.NoHold] or [planner.Refuse].
func NodeBoundRefusal(d *daemonset.Decision) reasons.Reason {
	code := reasons.RoomImpossible
	switch d.Stopped {
	case daemonset.RuleMax:
		code = reasons.OverMax
	case planner.RuleExtender:
		code = reasons.PreemptionRefused
	case planner.RuleNeverPreempt:
		code = reasons.PreemptionNever
	}
	return reasons.New(code, "%s", d.Sentence())
}
