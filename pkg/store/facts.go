package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Facts about pods that plans need in addition to queues, budgets and originators: which
// pods are opted out (law 1), and which are never victims.

// UpsertPriorityClass sets whether the pods of a PriorityClass are opted out.
func (s *Store) UpsertPriorityClass(name string, optOut bool, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if s.cache.Protection.SetClass(name, optOut) {
		s.touchAll()
	}
}

// DeletePriorityClass handles the deletion of a PriorityClass.
func (s *Store) DeletePriorityClass(name string, now time.Time) {
	s.UpsertPriorityClass(name, false, now)
}

// protection returns why a pod is never a victim.
func (s *Store) protection(p *pod) planner.Protection {
	switch {
	case p.lingers(s.preemption.HoldTimeout):
		return planner.Lingering
	case p.leaves():
		return planner.Leaving
	case p.Static:
		return planner.Static
	case p.RequiredNode != "" || p.MaybeDaemon:
		return planner.DaemonSet
	case p.state == state.Assumed && !s.preemption.InPermit[p.UID]:
		return planner.Binding
	case p.Foreign:
		return planner.Foreign
	}
	return planner.Unprotected
}
