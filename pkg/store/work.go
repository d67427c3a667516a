package store

import (
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Work delivers a value when there is work to take.
func (s *Store) Work() <-chan struct{} { return s.model.Out.ToWrite }

// TakeWork returns what to write to the cluster. Items about the same preemptor must be
// written in this order.
func (s *Store) TakeWork() []output.Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	return model.Take(&s.model.Out.Work)
}

// TakeVacated returns the nodes where a hold ended since the last call, so pods that were
// refused them may try again. This includes holds that ended because their preemptor was
// bound: it may have left room, and a pod that is not retried would wait for a hold that
// is over and miss the events that would help it.
func (s *Store) TakeVacated() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return model.Take(&s.model.Out.Vacated)
}
