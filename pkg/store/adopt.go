package store

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// The hold that is written on a preemptor is authoritative for every process that did not
// make the hold: the next process, and a standby. The process that made the hold uses its
// own state.

// adoptAll adopts the holds that an earlier process has written, in the order in which
// they began. Running pods are placed before.
func (s *Store) adoptAll(now time.Time) {
	for _, p := range s.claimants() {
		s.adopt(p, now)
	}
}

// claimants are the pods with a claim (a hold written in their condition), earliest
// first.
func (s *Store) claimants() []*pod {
	var out []*pod
	for _, p := range s.pods {
		if p.Claim != nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *pod) int {
		return cmp.Or(a.Claim.Since.Compare(b.Claim.Since), cmp.Compare(a.UID, b.UID))
	})
	return out
}

// adopt takes up the hold that is written on a pod, or releases it if it cannot.
func (s *Store) adopt(p *pod, now time.Time) {
	if p.Claim == nil || p.asks.Holds() || p.Foreign && p.RequiredNode == "" {
		return
	}
	h := s.claimed(p)
	end, why := s.cache.Nodes.Unusable(h.Node)
	switch {
	case p.state.HasNode():
		end, why = reservations.Bound, reasons.Reason{}
	case p.app == nil && !p.Foreign:
		end, why = reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod has no queue")
	case end == "":
		if err := s.placeHold(p, h); err != nil {
			end, why = reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "%v", err)
		}
	}
	if end != "" {
		p.ownAsks()
		p.asks.Ended = h.Since
		h.Asker, h.Namespace, h.Name = p.UID, p.Namespace, p.Name
		s.enterStep(p, Step{Kind: StepEnded, Hold: h, Ended: end, Node: p.Node, Reason: why}, now)
		s.toWrite(Work{Ref: p.Ref(), Kind: WorkRelease, Hold: h, Ended: end, Reason: why})
		return
	}
	placed, _ := s.preemption.Holds.Of(p.UID)
	p.asks.DecidedAt = preemption.DecidedAt(placed.Decision)
	s.enterStep(p, Step{Kind: StepTakenUp, Hold: placed, Reason: p.reason}, now)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkDisrupt, Hold: placed})
	if placed.Required {
		s.supersede(s.cache.Nodes.Get(placed.Node), now)
		s.rest(p, now) // it determines again which pods it waits for
		return
	}
	s.wakeHolder(p, now)
}

// claimed returns the hold that is written on a pod. A victim that is also in an earlier
// claim belongs to that one: the later hold was taken back by a process that stopped
// before it wrote so.
func (s *Store) claimed(p *pod) reservations.Hold {
	c := p.Claim
	h := reservations.Hold{
		Node: c.Node, Since: c.Since, ClearSince: c.ClearSince, Decision: c.Decision, Required: p.RequiredNode != "",
		Patient: p.RequiredNode != "" && len(c.Victims) == 0,
	}
	for _, uid := range c.Victims {
		v := s.pods[uid]
		h.Committed = h.Committed || v == nil || v.On() == nil || v.Deleting
		if v == nil || v.chosenBy == "" {
			h.Chosen = append(h.Chosen, uid)
		}
	}
	if h.Committed {
		h.Disrupted = latest(h.Since, preemption.DecidedAt(h.Decision))
	}
	return h
}

// follow handles changes of what is written on a pod. A standby follows the leader's
// holds. The leader gets its own claims back as events and adopts only those it does not
// know, which are from an earlier process.
func (s *Store) follow(p *pod, now time.Time) {
	switch {
	case !s.started:
		return
	case !s.standby:
		if p.Claim != nil && !p.asks.IsEcho(p.Claim.Since) {
			s.adopt(p, now)
		}
		return
	}
	if h, ok := s.preemption.Holds.Of(p.UID); ok && !s.isAsClaimed(p, &h) {
		s.endHold(p, reservations.Superseded, reasons.Reason{}, now)
	}
	s.adopt(p, now)
}

// isAsClaimed tells whether a hold equals what is written on its preemptor. It no longer
// does if a victim that belonged to another hold at adoption has become free since.
func (s *Store) isAsClaimed(p *pod, h *reservations.Hold) bool {
	c := p.Claim
	if c == nil || c.Node != h.Node || !c.Since.Equal(h.Since) || c.Decision != h.Decision {
		return false
	}
	return !slices.ContainsFunc(c.Victims, func(uid types.UID) bool {
		v := s.pods[uid]
		return v != nil && v.On() != nil && v.chosenBy == ""
	})
}

// lead begins to lead: it adopts what other processes have written, as after a restart. A
// hold of this process that is not seen on its preemptor is released, and the release is
// written, because this process may have led before without having seen its own last
// writes. If another claim is seen there, it replaces the hold.
func (s *Store) lead(now time.Time) {
	var unseen []Work
	for _, p := range s.sortedPods() {
		h, ok := s.preemption.Holds.Of(p.UID)
		if !ok || s.isAsClaimed(p, &h) {
			continue
		}
		why := reasons.New(reasons.HoldSuperseded,
			"another process of the scheduler may have led meanwhile, and node %s is not seen to be held", h.Node)
		if p.Claim == nil {
			unseen = append(unseen, Work{Ref: p.Ref(), Kind: WorkRelease, Hold: h, Ended: reservations.Superseded, Reason: why})
		}
		s.endHold(p, reservations.Superseded, why, now)
	}
	s.standby = false
	for _, w := range unseen {
		s.toWrite(w)
	}
	s.adoptAll(now)
	s.recallAll(now)
}

// mayNotHold tells whether a pod must not begin to hold a node because the store does not
// know that this process leads. The scheduler may take a pod before the store learns that
// it leads, or after it learns that it does not. A hold made then would not be written,
// and would end without a message as soon as the store reads what is written.
func (s *Store) mayNotHold(p *pod) bool { return s.standby && !p.asks.Holds() }

func notLeading() reasons.Reason {
	return reasons.New(reasons.Starting, "this process does not lead yet, or not any more: it makes no room for anybody")
}

// resume queues the writes of all current holds again, because the earlier writer may
// have stopped before it was done.
func (s *Store) resume() {
	s.out.work = slices.DeleteFunc(s.out.work, func(w Work) bool { return w.Kind != WorkRelease })
	for _, p := range s.sortedPods() {
		if h, ok := s.preemption.Holds.Of(p.UID); ok {
			s.toWrite(Work{Ref: p.Ref(), Kind: WorkDisrupt, Hold: h, Decision: p.asks.Decision, Required: p.asks.Required})
		}
	}
}
