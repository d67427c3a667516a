package store

import (
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Gated counts the pods of queues that are kept out of the scheduler's queue, by reason.
// Pods that back off are one number, whether they hold a node or not. The cost does not
// grow with the cluster.
func (s *Readers) Gated() map[reasons.Code]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[reasons.Code]int{}
	add := func(code reasons.Code, n int) {
		if n > 0 {
			out[code] += n
		}
	}
	for code, n := range s.model.History.Waits.Unplaced() {
		if code == "" { // before Start
			code = s.model.NotStarted().Code
		}
		add(code, n)
	}
	byClass := s.model.History.Waits.Total(state.Queued) - s.model.Pending.Order.Eligible()
	for code, n := range s.model.Pending.Order.Refused() {
		add(code, n)
		byClass -= n
	}
	for g := range s.model.Pending.Groups.All() {
		add(g.Code(), g.Blocked())
	}
	add(reasons.NoNodeFits, byClass)
	add(reasons.InOrder, s.model.Pending.Order.Eligible())
	add(reasons.BackingOff, s.model.History.Waits.Total(state.BackingOff))
	return out
}
