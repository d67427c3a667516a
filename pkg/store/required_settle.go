package store

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Settle applies a decision for a pod that requires a node. It returns whether the node
// is now held for it, and the reason given to users. If not, the pod's cycle must still
// be ended, by [Store.Failed] or [Store.Refused].
func (s *Store) Settle(uid types.UID, d *daemonset.Decision, now time.Time) (held bool, why reasons.Reason) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	switch {
	case !known || !p.Foreign && p.app == nil:
		return false, reasons.Brief(reasons.Starting)
	case p.state.HasNode():
		return true, reasons.New(reasons.InOrder, "the pod has a node")
	case s.mayNotHold(p):
		s.pending.TooEarly.Note(uid, now)
		return false, notLeading()
	}
	if _, why := s.cache.Nodes.Unusable(d.Node); !why.None() {
		s.awaitNode(p, s.cache.Nodes.Get(d.Node))
		return false, why
	}
	n := s.cache.Nodes.Get(d.Node)
	asDecided := n.Generation() == p.asks.SawNode
	switch d.Outcome {
	case daemonset.NoHold, planner.Refuse:
		why = s.decline(p, d, now)
	default:
		if h, _ := s.preemption.Holds.Of(uid); d.Outcome == planner.Hold && d.Stopped == "" && len(h.Chosen) == 0 && s.onlyItsOwn(p, n) {
			why = s.awaitItsOwn(p, n, now)
			break
		}
		held, why = s.holdRequired(p, d, now)
	}
	kind := StepRefused
	if held {
		kind = StepHeld
	}
	s.enterStep(p, Step{Kind: kind, Required: d, Reason: why}, now)
	if asDecided { // the only changes since are those of this call
		p.asks.SawNode = n.Generation()
	}
	if held || p.Foreign {
		s.recheckNode(p)
	}
	return held, why
}

// decline: the node is not held, or no longer.
func (s *Store) decline(p *pod, d *daemonset.Decision, now time.Time) reasons.Reason {
	n := s.cache.Nodes.Get(d.Node)
	why := declinedReason(s.cache.Tree(), p, d)
	silent := d.Stopped == planner.RuleExtender // the decision says nothing about the node
	if !silent {
		s.endHold(p, reservations.GivenUp, why, now)
	}
	p.asks.Refused = why
	s.awaitNode(p, n)
	if silent { // no event reports that the extender answers again
		p.asks.RetryAt = now.Add(s.preemption.RetryInterval)
		if p.Foreign {
			s.rest(p, p.asks.RetryAt)
		}
	}
	p.asks.Impossible = d.Stopped == planner.RuleTooLittle // the filters' answer may change at any time, amounts do not
	return why
}

// awaitItsOwn refuses to hold a node for a pod that waits only for pods of its own there.
// Their owner decides how long they stay, and a hold would keep the node from all others
// for that time.
func (s *Store) awaitItsOwn(p *pod, n *cache.Node, now time.Time) reasons.Reason {
	why := reasons.New(reasons.WaitingForRoom,
		"node %s has room for the pod once pods of its own queue or controller that leave are gone; the node is not held for it meanwhile", n.Name())
	s.endHold(p, reservations.GivenUp, why, now)
	p.asks.Refused = why
	s.awaitNode(p, n)
	return why
}

// holdRequired holds the node for a preemptor, or keeps holding it, and marks the
// victims.
func (s *Store) holdRequired(p *pod, d *daemonset.Decision, now time.Time) (bool, reasons.Reason) {
	why, again := preemption.HeldReason(d), time.Time{}
	h := reservations.Hold{Patient: d.Stopped != "", Decision: s.decide(p, now)}
	if h.Patient {
		h.Note = d.Waiting()
	}
	var chosen []types.UID
	if d.Outcome == planner.Preempt {
		var gone reasons.Reason
		chosen, gone = s.stillThere(d.Chosen())
		at := s.preemption.VictimsFrom(len(chosen), now)
		from, lost := s.furtherFrom(p, now)
		switch {
		case !gone.None():
			chosen, h.Patient, again = nil, true, now.Add(preemption.FirstTry)
			why = reasons.New(reasons.RoomAwaited, "node %s is held for the pod; %s, so it is planned anew", d.Node, gone.Text)
		case from.After(now):
			chosen, h.Patient, again = nil, true, from
			why = reasons.New(reasons.RoomAwaited, "node %s is held for the pod; %s", d.Node, lost.Text)
		case at.After(now):
			chosen, h.Patient, again = nil, true, at
			why = reasons.New(reasons.PreemptionPaced, "node %s is held for the pod; at most %d pods may be preempted within %v; more go in the next round",
				d.Node, s.preemption.MaxVictims, s.preemption.Round)
		default:
			s.preemption.VictimsChosen(len(chosen), now)
		}
	}
	if d.Stopped == daemonset.RuleDelay {
		again = now.Add(d.Wait)
	}
	if h.Patient && h.Note == "" {
		h.Note = "room is made for it there as soon as may be"
	}
	if err := s.claimRequired(p, d, chosen, h, now); err != nil {
		return false, reasons.New(reasons.HoldGivenUp, "%v", err)
	}
	if h, _ := s.preemption.Holds.Of(p.UID); d.Stopped == "" && len(chosen) == 0 && len(h.Chosen) > 0 && !h.Clear() {
		why = preemption.MakingRoom(&h) // earlier victims are still leaving
	}
	p.reason, p.asks.Activated = why, false
	s.wait(p, d, again, now)
	return true, why
}

// decide returns a new ID for a decision.
func (s *Store) decide(p *pod, now time.Time) string {
	p.asks.DecidedAt = latest(now, p.asks.DecidedAt.Add(1))
	return preemption.DecisionID(p.UID, p.asks.DecidedAt)
}

// claimRequired begins the hold of a preemptor, or adds victims to it.
func (s *Store) claimRequired(p *pod, d *daemonset.Decision, chosen []types.UID, h reservations.Hold, now time.Time) error {
	old, held := s.preemption.Holds.Of(p.UID)
	switch {
	case !held:
		h.Node, h.Since, h.Required, h.Chosen = d.Node, latest(now, p.asks.Ended.Add(1)), true, chosen
		if err := s.placeHold(p, h); err != nil {
			return err
		}
		s.supersede(s.cache.Nodes.Get(d.Node), now)
	case len(chosen) > 0:
		for _, uid := range old.Chosen {
			if v := s.pods[uid]; v == nil || v.On() == nil || v.chosenBy == p.UID {
				chosen = append(chosen, uid) // it leaves or is gone, for this hold
			}
		}
		h.Chosen, h.Committed = chosen, old.Committed
		s.park(p)
		s.rechoose(p, h, now)
	default:
		s.park(p)
		h.Chosen, h.Decision, h.Committed, h.Victims = old.Chosen, old.Decision, old.Committed, s.awaited(&old)
		if h.Patient != old.Patient || h.Note != old.Note || !sameUIDs(h.Victims, old.Victims) {
			s.preemption.Holds.Choose(p.UID, h, now)
		}
		s.repeat(p, d, now)
		return nil
	}
	p.asks.Required, p.asks.Missed = d, 0
	s.tell(p, WorkDisrupt, d, now)
	return nil
}

func sameUIDs(a, b []types.UID) bool {
	a = slices.Compact(slices.Sorted(slices.Values(a)))
	return slices.Equal(a, b)
}

// tell queues a write of the current hold of a preemptor.
func (s *Store) tell(p *pod, kind WorkKind, d *daemonset.Decision, now time.Time) {
	h, _ := s.preemption.Holds.Of(p.UID)
	p.asks.ToldAt = now
	s.toWrite(Work{Ref: p.Ref(), Kind: kind, Hold: h, Required: d})
}

// repeat reports again that no victim can be chosen, at most once per retry interval
// (D8).
func (s *Store) repeat(p *pod, d *daemonset.Decision, now time.Time) {
	if d.Stopped == daemonset.RuleNoVictims && !now.Before(p.asks.ToldAt.Add(s.preemption.RetryInterval)) {
		s.tell(p, WorkTell, d, now)
	}
}

// park takes a preemptor with a hold out of its cycle.
func (s *Store) park(p *pod) {
	if p.state == state.Unschedulable {
		return
	}
	s.withdraw(p)
	s.pending.Keys.Remove(p.UID)
	s.enter(p, state.Unschedulable)
}

// rechoose replaces the victims of a hold. Pods that are no longer victims and were not
// deleted stay.
func (s *Store) rechoose(p *pod, h reservations.Hold, now time.Time) {
	old, _ := s.preemption.Holds.Of(p.UID)
	var stay []*pod
	for _, uid := range old.Chosen {
		if v := s.pods[uid]; v != nil && v.chosenBy == p.UID && !slices.Contains(h.Chosen, uid) {
			s.chosen(v, "")
			s.weigh(v)
			s.touchPod(v)
			stay = append(stay, v)
		}
	}
	for _, uid := range h.Chosen {
		s.choose(s.pods[uid], p)
	}
	h.Asker, h.Node, h.Required = p.UID, old.Node, true
	h.Victims = s.awaited(&h)
	s.preemption.Holds.Choose(p.UID, h, now)
	s.touchName(h.Node)
	for _, v := range stay {
		if !v.leaves() {
			s.gone(v.UID, now)
		}
	}
}

// wait sets when a preemptor that holds its node comes back, if anything but an event of
// its victims decides that.
func (s *Store) wait(p *pod, d *daemonset.Decision, again, now time.Time) {
	h, _ := s.preemption.Holds.Of(p.UID)
	switch {
	case !again.IsZero():
		s.rest(p, again)
	case d.Stopped == daemonset.RuleNoVictims:
		s.awaitNode(p, s.cache.Nodes.Get(h.Node))
	case h.Clear() && !s.behind(p, &h): // the scheduler does not know yet that all are gone
		s.rest(p, s.nextTry(p, &h, now))
	}
}

// recheckNode lets a preemptor through soon if its awaited node changed since its
// decision began.
func (s *Store) recheckNode(p *pod) {
	if n := s.cache.Nodes.Get(s.preemption.NodeWaits.Of(p.UID)); n != nil && n.Generation() != p.asks.SawNode {
		s.rest(p, p.asks.TriedAt.Add(atMostEvery))
	}
}
