package output

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// StepKind is the kind of a step.
type StepKind uint8

const (
	// StepRefused is a decision to do nothing.
	StepRefused StepKind = iota
	// StepHeld is a decision to hold a node for the asker, or to keep holding it.
	StepHeld
	// StepTakenUp is the adoption of a hold that is written on the asker.
	StepTakenUp
	// StepCommitted is a second check of the decision that passed, right before its
	// victims are deleted.
	StepCommitted
	// StepAborted is a check that failed: no victim is deleted, and the node stays held.
	StepAborted
	// StepVictimsDeleted is the deletion of all victims.
	StepVictimsDeleted
	// StepLost is that other pods took the room that was made. The hold goes on, or it ended with a
	// bind and the kubelet then refused the pod.
	StepLost
	// StepEnded is the end of a hold.
	StepEnded
)

// stepNames are also the names of stages in answers of REST.
var stepNames = [...]string{"refused", "held", "taken up", "committed", "called off", "disrupted", "lost", "ended"}

func (k StepKind) String() string { return stepNames[k] }

// Step is one decision about an asker, or an action. Immutable.
type Step struct {
	objects.Ref // the asker
	Kind        StepKind
	At          time.Time
	// Queue is the path of the asker's leaf; empty for a pod of no queue.
	Queue string
	// Standby is true if another process decides and this one follows.
	Standby bool
	// Hold is the hold after the step, or as it was when it ended; zero if there is none.
	Hold reservations.Hold
	// Decision is set for StepRefused and StepHeld; NodeBoundDecision is set instead for a
	// node-bound asker. Types has the names of the resource types of their amounts.
	Decision          *planner.Decision
	NodeBoundDecision *daemonset.Decision
	Types             []string
	// Going are the victims to delete (StepCommitted).
	Going []Victim
	// Ended is how the hold ended (StepEnded).
	Ended reservations.End
	// Losses is how many holds in a row the asker has lost with this step; 0 if the
	// step is not a loss.
	Losses int
	// Reason is the reason given to users; none if all went as decided.
	Reason reasons.Reason
}
