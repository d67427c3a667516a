package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// WorkKind says what there is to write about a hold.
type WorkKind uint8

const (
	// WorkDisrupt is to write the claim on the asker, commit, then let the victims go.
	WorkDisrupt WorkKind = iota
	// WorkRecord is to write the claim again: it is clear since, and the asker is not
	// bound yet.
	WorkRecord
	// WorkRelease is to take the claim back and tell why: the hold has ended.
	WorkRelease
	// WorkTell is to tell people why no pod goes for the asker now (D8): again, or with the
	// Reason, because the room that was made was lost.
	WorkTell
	// WorkInquire is to look how the asker ended, which is gone, and to tell KubeletRefused.
	WorkInquire
)

// Work is something to write to the cluster about a hold. The store decides, the
// executor writes.
type Work struct {
	Ref  // the asker
	Kind WorkKind
	// Hold is the hold as it is, or was when it ended.
	Hold reservations.Hold
	// Decision is what led to the hold; nil where it was taken up after a restart.
	Decision *victims.Decision
	// Required is the same of an asker that requires a node.
	Required *required.Decision
	// Ended and Reason say how the hold ended (WorkRelease), Reason why its room was lost
	// (WorkTell).
	Ended  reservations.End
	Reason reasons.Reason
}

// Victim is a pod that is to be deleted for an asker.
type Victim struct {
	Ref
	Node string
	// Queue is the path of its leaf; empty for a pod of no queue.
	Queue string
	// Note is what people are told on the victim: the asker, both queues, the laws.
	Note string
	// Grace is how long it has to stop.
	Grace time.Duration
}

// work is what there is to write and nobody has taken.
type work struct {
	items []Work
	ready chan struct{}
}

// Work delivers a value when there is something to take.
func (s *Store) Work() <-chan struct{} { return s.work.ready }

// TakeWork returns what there is to write to the cluster, in the order in which
// it has to be written, as far as it is about one asker.
func (s *Store) TakeWork() []Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.work.items
	s.work.items = nil
	return taken
}

// toWrite adds to the work, unless another process does it.
func (s *Store) toWrite(w Work) {
	if !s.standby {
		s.work.items = append(s.work.items, w)
	}
}

// TakeVacated returns the nodes a hold of which ended since the last call: pods
// that were turned away may try again. That the asker was bound is no exception:
// it may have left room, and who is not tried again waits for a hold that is
// over, and not for the events that would help.
func (s *Store) TakeVacated() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.vacated
	s.vacated = nil
	return taken
}

// KeepsOff returns the asker for which other schedulers are to be kept off a node: the
// first of its holders for which pods were chosen to go; empty for none. It is false
// while this process does not lead, and so does not know what is held.
func (s *Store) KeepsOff(node string) (asker types.UID, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started || s.standby {
		return "", false
	}
	for _, h := range s.holds.Holders(node) {
		if len(h.Chosen) > 0 {
			return h.Asker, true
		}
	}
	return "", true
}
