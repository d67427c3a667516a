package store

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// What is written on an asker is the truth for whoever has not made its hold: the
// next process, and one that stands by. Who made it knows better.

// adoptAll takes up the holds that an earlier process has written, in the order
// in which they began. Pods that run are placed before.
func (s *Store) adoptAll(now time.Time) {
	for _, p := range s.claimants() {
		s.adopt(p, now)
	}
}

// foretell follows what is written on pods before Start.
func (s *Store) foretell(event *Pod) {
	if s.early == nil {
		return
	}
	if _, had := s.early.End(event.UID); had {
		s.heldAnew = true
	}
	c := event.Claim
	if c == nil || event.Node != "" || event.Terminal {
		return
	}
	h := reservations.Hold{
		Asker: event.UID, Namespace: event.Namespace, Name: event.Name, Node: c.Node, Since: c.Since,
		Request: event.Request, Priority: event.Priority, Required: event.RequiredNode != "", Chosen: c.Victims,
	}
	if s.early.Place(h) == nil { // else it is none
		s.heldAnew = true
	}
}

// claimants are the pods with a claim, the earliest first.
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

// adopt takes up the hold that is written on a pod, or has it taken back.
func (s *Store) adopt(p *pod, now time.Time) {
	if p.Claim == nil || p.asks.holds || p.Foreign && p.RequiredNode == "" {
		return
	}
	h := s.claimed(p)
	end, why := s.unusable(h.Node)
	switch {
	case p.state.allocated():
		end, why = reservations.Bound, reasons.Reason{}
	case p.app == nil && !p.Foreign:
		end, why = reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod has no queue")
	case end == "":
		if err := s.placeHold(p, h); err != nil {
			end, why = reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "%v", err)
		}
	}
	if end != "" {
		s.ownAsks(p)
		p.asks.ended = h.Since
		h.Asker, h.Namespace, h.Name = p.UID, p.Namespace, p.Name
		s.enterStep(p, Step{Kind: StepEnded, Hold: h, Ended: end, Node: p.Node, Reason: why}, now)
		s.toWrite(Work{Ref: p.Ref(), Kind: WorkRelease, Hold: h, Ended: end, Reason: why})
		return
	}
	placed, _ := s.holds.Of(p.UID)
	p.asks.decidedAt = decidedAt(placed.Decision)
	s.enterStep(p, Step{Kind: StepTakenUp, Hold: placed, Reason: p.reason}, now)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkDisrupt, Hold: placed})
	if placed.Required {
		s.supersede(s.nodes[placed.Node], now)
		s.rest(p, now) // it finds out anew whom it waits for
		return
	}
	s.wakeHolder(p, now)
}

// claimed is the hold that is written on a pod. A victim that is in an earlier
// claim, too, goes for that one: the later claim was taken back, and the process
// that did so did not live to write it.
func (s *Store) claimed(p *pod) reservations.Hold {
	c := p.Claim
	h := reservations.Hold{
		Node: c.Node, Since: c.Since, ClearSince: c.ClearSince, Decision: c.Decision, Required: p.RequiredNode != "",
		Patient: p.RequiredNode != "" && len(c.Victims) == 0,
	}
	for _, uid := range c.Victims {
		v := s.pods[uid]
		h.Committed = h.Committed || v == nil || v.on == nil || v.Deleting
		if v == nil || v.chosenBy == "" {
			h.Chosen = append(h.Chosen, uid)
		}
	}
	if h.Committed {
		h.Disrupted = latest(h.Since, decidedAt(h.Decision))
	}
	return h
}

// follow follows what is written on a pod while another process leads. Who leads
// is told of its own claims; what it does not know is from the process before.
func (s *Store) follow(p *pod, now time.Time) {
	switch {
	case !s.started:
		return
	case !s.standby:
		if p.Claim != nil && p.Claim.Since.After(p.asks.ended) {
			s.adopt(p, now)
		}
		return
	}
	if h, ok := s.holds.Of(p.UID); ok && !s.isAsClaimed(p, &h) {
		s.endHold(p, reservations.Superseded, reasons.Reason{}, now)
	}
	s.adopt(p, now)
}

// isAsClaimed tells whether a hold is what is written on its asker. It is not any
// more once a victim is free that went for another one when it was taken up.
func (s *Store) isAsClaimed(p *pod, h *reservations.Hold) bool {
	c := p.Claim
	if c == nil || c.Node != h.Node || !c.Since.Equal(h.Since) || c.Decision != h.Decision {
		return false
	}
	return !slices.ContainsFunc(c.Victims, func(uid types.UID) bool {
		v := s.pods[uid]
		return v != nil && v.on != nil && v.chosenBy == ""
	})
}

// lead begins to lead: what other processes have written is taken up as after a
// restart. That a hold is over of which nothing is seen on its asker is written: this
// process may have led before, and not have seen yet what it wrote then. Where another
// claim is seen, that one takes its place.
func (s *Store) lead(now time.Time) {
	var unseen []Work
	for _, p := range s.sortedPods() {
		h, ok := s.holds.Of(p.UID)
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

// mayNotHold tells whether a pod cannot begin to hold a node, for this process does
// not lead as far as the store knows. The scheduler may take a pod before the store
// is told that it leads, or after it was told that it does not. A hold of then would
// be written nowhere, and be over without anybody being told as soon as the store
// looks what is written.
func (s *Store) mayNotHold(p *pod) bool { return s.standby && !p.asks.holds }

func notLeading() reasons.Reason {
	return reasons.New(reasons.Starting, "this process does not lead yet, or not any more: it makes no room for anybody")
}

// resume has what is left of all holds written, for who wrote it may have stopped.
func (s *Store) resume() {
	s.work.items = slices.DeleteFunc(s.work.items, func(w Work) bool { return w.Kind != WorkRelease })
	for _, p := range s.sortedPods() {
		if h, ok := s.holds.Of(p.UID); ok {
			s.toWrite(Work{Ref: p.Ref(), Kind: WorkDisrupt, Hold: h, Decision: p.asks.decision, Required: p.asks.required})
		}
	}
}
