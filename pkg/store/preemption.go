package store

import (
	"reflect"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// PreemptionOptions set when and how fast queues preempt for their guarantees.
type PreemptionOptions = preemption.Options

// DefaultPreemption returns the options of a store without SetPreemption.
func DefaultPreemption() PreemptionOptions { return preemption.DefaultOptions() }

// NodeBoundPod is a node-bound pod that was not tried yet.
type NodeBoundPod = preemption.NodeBoundPod

// atMostEvery is the shortest time between two plans for one preemptor.
const atMostEvery = preemption.AtMostEvery

// SetPreemption replaces the options.
func (s *Store) SetPreemption(o PreemptionOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := &s.preemption.Options
	if old.IgnorePodOptOut != o.IgnorePodOptOut || !reflect.DeepEqual(old.Required, o.Required) ||
		old.HoldTimeout != o.HoldTimeout || old.MaxVictimGrace != o.MaxVictimGrace {
		s.touchAll()
	}
	s.preemption.Options = o
	s.preemption.Holds.TimesChange()
	s.pending.SetStrict(o.StrictGuarantee)
	s.asking.Order.SetStrict(o.StrictGuarantee)
}

// Preemption returns the options in force.
func (s *Store) Preemption() PreemptionOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.preemption.Options
}

// NodeBound returns the pods that can run only on this node, wait, and were not tried
// there, in their order. It takes no lock.
func (s *Store) NodeBound(node string) []NodeBoundPod { return s.preemption.NodeBound.On(node) }

// AnyNodeBound tells whether any node has such pods. It takes no lock.
func (s *Store) AnyNodeBound() bool { return s.preemption.NodeBound.Any() }
