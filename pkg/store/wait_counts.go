package store

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// tallyOf returns what a pod adds to the counts of waiting pods.
func tallyOf(p *pod) history.Tally {
	if p.Foreign || p.state.HasNode() {
		return history.Tally{}
	}
	t := history.Tally{In: true, State: p.state, Leaf: queues.NoQueue}
	switch {
	case p.state == state.NoQueue:
		t.Code = p.reason.Code
	case p.app != nil && !p.NeverPreempts && p.RequiredNode == "":
		t.Leaf = p.app.Leaf
	}
	return t
}

// Gated counts the pods of queues that are kept out of the scheduler's queue, by reason.
// Pods that back off are one number, whether they hold a node or not. The cost does not
// grow with the cluster.
func (s *Store) Gated() map[reasons.Code]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[reasons.Code]int{}
	add := func(code reasons.Code, n int) {
		if n > 0 {
			out[code] += n
		}
	}
	for code, n := range s.history.waits.Unplaced() {
		if code == "" { // before Start
			code = s.notStarted().Code
		}
		add(code, n)
	}
	byClass := s.history.waits.Total(state.Queued) - s.pending.Order.Eligible()
	for code, n := range s.pending.Order.Refused() {
		add(code, n)
		byClass -= n
	}
	for g := range s.pending.Groups.All() {
		add(g.Code(), g.Blocked())
	}
	add(reasons.NoNodeFits, byClass)
	add(reasons.InOrder, s.pending.Order.Eligible())
	add(reasons.BackingOff, s.history.waits.Total(state.BackingOff))
	return out
}
