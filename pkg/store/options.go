package store

import (
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Options are the settings of a store.
type Options = model.Options

// PreemptionOptions set when and how fast queues preempt for their guarantees.
type PreemptionOptions = preemption.Options

// DefaultPreemption returns the options of a store without SetPreemption.
func DefaultPreemption() PreemptionOptions { return preemption.DefaultOptions() }

// SetPreemption replaces the options.
func (s *Store) SetPreemption(o PreemptionOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.TouchAll()
	s.model.Preemption.Options = o
	s.model.Preemption.Holds.TimesChange()
	s.model.Pending.SetStrict(o.StrictGuarantee)
	s.model.Asking.Order.SetStrict(o.StrictGuarantee)
}
