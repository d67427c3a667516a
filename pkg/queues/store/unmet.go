package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// said is what became of the latest plan for a pod of a leaf: refused, or put off
// because of the pace.
type said struct {
	code  reasons.Code
	until time.Time // when it is not news any more
}

// saidGrace is how much later than it is due the next plan may be made before what was
// said of the last one is not news any more.
const saidGrace = 2 * time.Second

// say notes what became of a plan for a pod, or of the wish for one. Only some
// reasons are about all of a queue's pods.
func (s *Store) say(p *pod, code reasons.Code, now time.Time) {
	s.sayUntil(p, code, now.Add(s.preemption.RetryInterval))
}

// sayUntil does so where the next plan is due at a time.
func (s *Store) sayUntil(p *pod, code reasons.Code, next time.Time) {
	switch code {
	case reasons.PreemptionRefused, reasons.PreemptionPaced, reasons.HoldGivenUp:
		if p.app != nil && p.RequiredNode == "" {
			p.app.standing.said = said{code, next.Add(saidGrace)}
		}
	}
}

// waitsAtOnce is for how many queues the lock is taken once.
const waitsAtOnce = 64

// WaitsFor says of each leaf, which is under a guarantee, what its pods wait for
// that making room might serve; no reason where there are none. It is one reason
// for the queue, that of the pods that are nearest to being served:
//
//	MakingRoom           a node is held for one
//	InOrder              it is their turn, or will be: to be scheduled, or planned for
//	PreemptionDisabled   the partition has no preemption
//	PreemptionPaced      plans for others come first, or the round is over
//	PreemptionRefused    the last plan, within the retry interval, came to nothing
//	HoldGivenUp          the last plan could not be carried out, or its room was lost
//	PreemptionDelayed    none has waited for long enough
//
// The lock is held for a few queues at a time.
func (s *Store) WaitsFor(leaves []*queues.Queue, now time.Time) []reasons.Code {
	out := make([]reasons.Code, 0, len(leaves))
	for len(leaves) > 0 {
		n := min(waitsAtOnce, len(leaves))
		out = s.waitFor(out, leaves[:n], now)
		leaves = leaves[n:]
	}
	return out
}

func (s *Store) waitFor(out []reasons.Code, leaves []*queues.Queue, now time.Time) []reasons.Code {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, leaf := range leaves {
		q, there := s.draft.Find(leaf.Path) // its ID may be another queue's by now
		if !there {
			out = append(out, "")
			continue
		}
		out = append(out, s.waitsFor(q, now))
	}
	return out
}

func (s *Store) waitsFor(q *queues.Queue, now time.Time) reasons.Code {
	st := s.census.leaves[q.ID]
	if st == nil {
		return ""
	}
	eligible := s.index.EligibleAt(q.ID)
	inOrder := min(eligible, st.in[waiting]) + st.in[admitted]
	byTwins := max(0, st.in[waiting]-eligible-s.index.RefusedOf(q.ID))
	stuck := st.in[parked] + st.in[cooling] + byTwins + min(s.index.OverMaxAbove(q.ID), st.in[waiting])
	asked := s.asking.current != nil && s.asking.current.app != nil && s.asking.current.app.leaf == q.ID
	recent := !now.After(st.said.until)
	switch {
	case !q.Arriving.IsZero():
		return reasons.MakingRoom
	case stuck == 0 && inOrder == 0:
		return "" // they are over a quota that nobody else's pods use up
	case stuck == 0, asked:
		return reasons.InOrder
	case !s.spec.PreemptionEnabled:
		return reasons.PreemptionDisabled
	case recent:
		return st.said.code
	case s.asking.order.index.EligibleAt(q.ID) > 0:
		return reasons.PreemptionPaced
	}
	return reasons.PreemptionDelayed
}
