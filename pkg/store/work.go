package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// WorkKind is what to write about a hold.
type WorkKind uint8

const (
	// WorkDisrupt is to write the claim on the preemptor, commit, then delete the victims.
	WorkDisrupt WorkKind = iota
	// WorkRecord is to write the claim again, because the hold is clear now and the preemptor
	// is not bound yet.
	WorkRecord
	// WorkRelease is to remove the claim of a hold that has ended, and to report why.
	WorkRelease
	// WorkTell is to report why no victim is deleted for the preemptor now (D8). It is a
	// repetition, or has a Reason because the room that was made was lost.
	WorkTell
	// WorkInquire is to find out how a preemptor that is gone ended, and to call
	// KubeletRefused.
	WorkInquire
)

// Work is something to write to the cluster about a hold. The store decides, and the
// executor writes.
type Work struct {
	objects.Ref // the preemptor
	Kind        WorkKind
	// Hold is the current hold, or as it was when it ended.
	Hold reservations.Hold
	// Decision is what led to the hold; nil if it was adopted after a restart.
	Decision *planner.Decision
	// Required is the same for a preemptor that requires a node.
	Required *daemonset.Decision
	// Ended and Reason are how the hold ended (WorkRelease); Reason is why its room was
	// lost (WorkTell).
	Ended  reservations.End
	Reason reasons.Reason
}

// Victim is a pod to delete for a preemptor.
type Victim struct {
	objects.Ref
	Node string
	// Queue is the path of its leaf; empty for a pod of no queue.
	Queue string
	// Note is the message that the victim gets: the preemptor, both queues, the laws.
	Note string
	// Grace is its grace period.
	Grace time.Duration
}

// Work delivers a value when there is work to take.
func (s *Store) Work() <-chan struct{} { return s.out.toWrite }

// TakeWork returns what to write to the cluster. Items about the same preemptor must be
// written in this order.
func (s *Store) TakeWork() []Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	return take(&s.out.work)
}

// toWrite adds an item, unless this process is a standby.
func (s *Store) toWrite(w Work) {
	if !s.standby {
		s.out.work = append(s.out.work, w)
	}
}

// TakeVacated returns the nodes where a hold ended since the last call, so pods that were
// refused them may try again. This includes holds that ended because their preemptor was
// bound: it may have left room, and a pod that is not retried would wait for a hold that
// is over and miss the events that would help it.
func (s *Store) TakeVacated() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return take(&s.out.vacated)
}

// KeepsOff returns the preemptor for which other schedulers must be kept off a node: its
// first holder with chosen victims; empty for none. ready is false while this process
// does not lead and so does not know the holds.
func (s *Store) KeepsOff(node string) (asker types.UID, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started || s.standby {
		return "", false
	}
	for _, h := range s.preemption.Holds.Holders(node) {
		if len(h.Chosen) > 0 {
			return h.Asker, true
		}
	}
	return "", true
}
