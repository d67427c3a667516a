package output

import (
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Attempt is the input of a plan for a pod. It is immutable.
type Attempt struct {
	World *planner.World
	Ask   *planner.Ask
	// Strict is params.StrictGuarantee.
	Strict bool
}

// The states of a pod that can run on one node only and found no room there:
//
//	          Settle: it would fit without others      deadline, or its node changed
//	refused ─────────────────────► held, no victims ───────────────────────► let through
//	  ▲  │                           │                                         │ Settle
//	  │  │ its node changed          │ Settle: victims                         ▼
//	  │  └──► let through            └────────────► held, victims leave ◄── victims
//	  │                                                 │     Commit fails: held, no victims
//	  └──── it would still not fit,                     ▼
//	        or over a max: the hold ends             room: let through, bound: the hold ends
//
// Its hold begins before any victim is chosen, and lasts while plans change, so that no
// other pod gets the room in between. A new plan is made whenever a cycle of the pod
// fails, on the current state, in which chosen victims count as leaving.
//
// Such a pod is planned for at once and regardless of its queue's guarantee, so it is not
// in the [preemption.Queue]. A pod of no queue ([Pod.Peer]) has a record like
// this and is Unschedulable, or BackingOff if it has a deadline. It has no gate: it is let through
// by activating it.

// RequiredAttempt is the input of a decision for a pod that requires a node. Immutable.
type RequiredAttempt struct {
	Node *daemonset.Node
	// Before are the pods that are served before the preemptor, in the order of
	// Node.Before.
	Before []objects.Ref
	Ask    *daemonset.Ask
	// Params does not have the filters.
	Params daemonset.Params
}

// Ask is what a scheduling cycle needs to know about its pod.
type Ask struct {
	objects.Ref
	Leaf    queues.ID
	Queue   string // path of the leaf
	App     string // application ID
	Request resources.Vector
}

// Refusal is why a plan failed.
func Refusal(d *planner.Decision) reasons.Reason {
	if d.Together != nil {
		return reasons.New(reasons.PodGroupBeyondGuarantee, "%s", d.Sentence())
	}
	return reasons.New(reasons.PreemptionRefused, "%s", d.Sentence())
}
