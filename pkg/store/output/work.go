package output

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// WorkKind is what to write about a hold.
type WorkKind uint8

const (
	// WorkDeleteVictims is to write the claim on the asker, commit, then delete the victims.
	WorkDeleteVictims WorkKind = iota
	// WorkRecord is to write the claim again: the hold is clear and the asker not bound yet,
	// or victims were taken out of it.
	WorkRecord
	// WorkRelease is to remove the claim of a hold that has ended, and to report why.
	WorkRelease
	// WorkTell is to report again why no victim is deleted for the asker (D8), or with a Reason
	// that the room that was made for it was lost.
	WorkTell
	// WorkInquire is to find out how an asker that is gone ended, and to call
	// KubeletRefused.
	WorkInquire
)

// Work is something to write to the cluster about a hold. The store decides, and the
// executor writes.
type Work struct {
	objects.Ref // the asker
	Kind        WorkKind
	// Hold is the current hold, or as it was when it ended.
	Hold reservations.Hold
	// Decision is what led to the hold; nil if it was restored after a restart.
	Decision *planner.Decision
	// NodeBoundDecision is the same for a node-bound asker.
	NodeBoundDecision *daemonset.Decision
	// Ended and Reason are how the hold ended (WorkRelease); Reason is why its room was
	// lost (WorkTell).
	Ended  reservations.End
	Reason reasons.Reason
}

// Undeletable is a victim that the API server refused to delete for good, and why.
type Undeletable struct {
	UID types.UID
	Why string
}

// Victim is a pod to delete for an asker.
type Victim struct {
	objects.Ref
	Node string
	// Queue is the path of its leaf; empty for a pod of no queue.
	Queue string
	// Note is the message that the victim gets: the asker, both queues, the laws.
	Note string
	// Grace is its grace period.
	Grace time.Duration
}
