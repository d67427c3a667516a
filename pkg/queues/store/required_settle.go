package store

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// Settle puts a decision for a pod that requires a node into force. It tells
// whether the node is held for it from now on, and what people are told. If not,
// its cycle is still to be ended, by [Store.Failed] or [Store.Refused].
func (s *Store) Settle(uid types.UID, d *required.Decision, now time.Time) (held bool, why reasons.Reason) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	switch {
	case !known || !p.Foreign && p.app == nil:
		return false, reasons.Brief(reasons.Starting)
	case p.state.allocated():
		return true, reasons.New(reasons.InOrder, "the pod has a node")
	}
	if _, why := s.unusable(d.Node); !why.None() {
		s.awaitNode(p, s.nodes[d.Node])
		return false, why
	}
	n := s.nodes[d.Node]
	asDecided := n.generation == p.asks.sawNode
	switch d.Outcome {
	case required.NoHold, victims.Refuse:
		why = s.decline(p, d, now)
	default:
		held, why = s.holdRequired(p, d, now)
	}
	if asDecided { // what changed since is what was done here
		p.asks.sawNode = n.generation
	}
	if held || p.Foreign {
		s.recheckNode(p)
	}
	return held, why
}

// decline: the node is not held, or not any more.
func (s *Store) decline(p *pod, d *required.Decision, now time.Time) reasons.Reason {
	n := s.nodes[d.Node]
	why := s.declinedReason(p, d)
	s.endHold(p, reservations.GivenUp, why, now)
	p.asks.refused = why
	s.awaitNode(p, n)
	p.asks.hopeless = d.Stopped == victims.RuleTooLittle // filters may think otherwise at any time, amounts do not
	return why
}

// holdRequired holds the node for an asker, or goes on to, and has those go that
// were chosen.
func (s *Store) holdRequired(p *pod, d *required.Decision, now time.Time) (bool, reasons.Reason) {
	why, again := requiredReason(d), time.Time{}
	h := reservations.Hold{Patient: d.Stopped != "", Decision: decisionID(p.UID, now)}
	if h.Patient {
		h.Note = d.Waiting()
	}
	var chosen []types.UID
	if d.Outcome == victims.Preempt {
		var gone reasons.Reason
		chosen, gone = s.stillOn(d)
		at := s.pace.until(len(chosen), s.preemption, now)
		switch {
		case !gone.None():
			chosen, h.Patient, again = nil, true, now.Add(firstMiss)
			why = reasons.New(reasons.RoomAwaited, "node %s is held for the pod; %s, so it is planned anew", d.Node, gone.Text)
		case at.After(now):
			chosen, h.Patient, again = nil, true, at
			why = reasons.New(reasons.PreemptionPaced, "node %s is held for the pod; at most %d pods may be preempted within %v; more go in the next round",
				d.Node, s.preemption.MaxVictims, s.preemption.Round)
		default:
			s.pace.spend(len(chosen), s.preemption, now)
		}
	}
	if d.Stopped == required.RuleDelay {
		again = now.Add(d.Wait)
	}
	if h.Patient && h.Note == "" {
		h.Note = "room is made for it there as soon as may be"
	}
	if err := s.claimRequired(p, d, chosen, h, now); err != nil {
		return false, reasons.New(reasons.HoldGivenUp, "%v", err)
	}
	if h, _ := s.holds.Of(p.UID); d.Stopped == "" && len(chosen) == 0 && len(h.Chosen) > 0 && !h.Clear() {
		why = makingRoom(&h) // those who were chosen before are on their way
	}
	p.reason = why
	s.wait(p, d, again, now)
	return true, why
}

// stillOn returns the victims of a decision if they are as they were.
func (s *Store) stillOn(d *required.Decision) ([]types.UID, reasons.Reason) {
	chosen := make([]types.UID, 0, len(d.Victims))
	for _, v := range d.Victims {
		p := s.pods[types.UID(v.UID)]
		if p == nil || p.on == nil || p.leaves() {
			return nil, reasons.New(reasons.HoldGivenUp, "pod %s/%s went while the plan was made", v.Namespace, v.Name)
		}
		chosen = append(chosen, p.UID)
	}
	return chosen, reasons.Reason{}
}

// claimRequired begins the hold of an asker, or adds to those who go for it.
func (s *Store) claimRequired(p *pod, d *required.Decision, chosen []types.UID, h reservations.Hold, now time.Time) error {
	old, held := s.holds.Of(p.UID)
	switch {
	case !held:
		h.Node, h.Since, h.Required, h.Chosen = d.Node, latest(now, p.asks.ended.Add(1)), true, chosen
		if err := s.placeHold(p, h); err != nil {
			return err
		}
		s.supersede(s.nodes[d.Node], now)
	case len(chosen) > 0:
		for _, uid := range old.Chosen {
			if v := s.pods[uid]; v != nil && v.on != nil && v.chosenBy == p.UID {
				chosen = append(chosen, uid) // it goes still, the new ones beside it
			}
		}
		h.Chosen = chosen
		s.park(p)
		s.rechoose(p, h, now)
	default:
		s.park(p)
		h.Chosen, h.Decision, h.Committed, h.Victims = old.Chosen, old.Decision, old.Committed, s.awaited(&old)
		if h.Patient != old.Patient || h.Note != old.Note || !sameUIDs(h.Victims, old.Victims) {
			s.holds.Choose(p.UID, h, now)
			s.holdsChanged()
		}
		s.repeat(p, d, now)
		return nil
	}
	p.asks.required, p.asks.missed = d, 0
	s.tell(p, WorkDisrupt, d, now)
	return nil
}

func sameUIDs(a, b []types.UID) bool {
	a = slices.Compact(slices.Sorted(slices.Values(a)))
	return slices.Equal(a, b)
}

// tell has written what became of the hold of an asker.
func (s *Store) tell(p *pod, kind WorkKind, d *required.Decision, now time.Time) {
	h, _ := s.holds.Of(p.UID)
	p.asks.toldAt = now
	s.toWrite(Work{Ref: p.Ref(), Kind: kind, Hold: h, Required: d})
}

// repeat tells people again that nobody goes, at most every retry interval (D8).
func (s *Store) repeat(p *pod, d *required.Decision, now time.Time) {
	if d.Stopped == required.RuleNoVictims && !now.Before(p.asks.toldAt.Add(s.preemption.RetryInterval)) {
		s.tell(p, WorkTell, d, now)
	}
}

// park takes an asker that holds a node out of its cycle.
func (s *Store) park(p *pod) {
	if p.state == parked {
		return
	}
	s.withdraw(p)
	s.keys.Delete(p.UID)
	s.enter(p, parked)
}

// rechoose changes who goes for the hold of an asker. Who does not any more, and
// was not deleted, stays.
func (s *Store) rechoose(p *pod, h reservations.Hold, now time.Time) {
	old, _ := s.holds.Of(p.UID)
	var stay []*pod
	for _, uid := range old.Chosen {
		if v := s.pods[uid]; v != nil && v.chosenBy == p.UID && !slices.Contains(h.Chosen, uid) {
			v.chosenBy = ""
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
	s.holds.Choose(p.UID, h, now)
	s.holdsChanged()
	s.touchName(h.Node)
	for _, v := range stay {
		if !v.leaves() {
			s.gone(v.UID, now)
		}
	}
}

// wait lets an asker that holds its node come back when there is reason to.
func (s *Store) wait(p *pod, d *required.Decision, again, now time.Time) {
	h, _ := s.holds.Of(p.UID)
	switch {
	case !again.IsZero():
		s.rest(p, again)
	case d.Stopped == required.RuleNoVictims:
		s.awaitNode(p, s.nodes[h.Node])
	case h.Clear() && !s.behind(p, &h): // the scheduler has not heard of all yet
		if p.asks.missed++; p.asks.missed == missesAtOnce {
			s.toWrite(Work{Ref: p.Ref(), Kind: WorkRecord, Hold: h})
		}
		wait := firstMiss << min(p.asks.missed-1, missesAtOnce)
		if p.asks.missed > missesAtOnce {
			wait = s.preemption.RetryInterval
		}
		s.rest(p, now.Add(wait))
	}
}

// recheckNode lets an asker through soon whose node changed since the decision
// was begun that it waits by.
func (s *Store) recheckNode(p *pod) {
	if n := p.asks.awaits; n != nil && n.generation != p.asks.sawNode {
		s.rest(p, p.asks.triedAt.Add(atMostEvery))
	}
}

// commitRequired judges again what is left of a decision for an asker. If it does
// not hold any more, nobody goes, and the node stays held: another decision is
// made at once.
func (s *Store) commitRequired(p *pod, h *reservations.Hold, now time.Time) ([]Victim, reasons.Reason) {
	left := s.left(h)
	if err := s.rejudgeRequired(p, h, left, now); err != nil {
		why := reasons.New(reasons.RoomAwaited, "node %s is held for the pod; things changed since it was decided who goes: %s", h.Node, oneLine(err))
		s.callOff(p, h, left, now)
		if p.state == parked || p.state == cooling {
			p.reason = why
		}
		return nil, why
	}
	s.holds.Commit(p.UID)
	s.holdsChanged()
	out := make([]Victim, 0, len(left))
	for _, v := range left {
		out = append(out, Victim{Ref: v.Ref(), Node: v.Node, Queue: s.queueOf(v), Note: s.noteRequired(p, v, h)})
	}
	return out, reasons.Reason{}
}

// callOff lets those stay who were to go and were not deleted.
func (s *Store) callOff(p *pod, h *reservations.Hold, left []*pod, now time.Time) {
	var chosen []types.UID
	for _, uid := range h.Chosen {
		if !slices.ContainsFunc(left, func(v *pod) bool { return v.UID == uid }) {
			chosen = append(chosen, uid)
		}
	}
	s.rechoose(p, reservations.Hold{Chosen: chosen, Patient: true, Committed: h.Committed, Decision: decisionID(p.UID, now)}, now)
	s.tell(p, WorkRecord, nil, now)
	s.rest(p, latest(now, p.asks.triedAt.Add(atMostEvery)))
}

// rejudgeRequired asks the rules about what is left of a decision, as if nothing
// of it had been decided yet.
func (s *Store) rejudgeRequired(p *pod, h *reservations.Hold, left []*pod, now time.Time) error {
	if len(left) == 0 {
		return nil
	}
	if p.state.allocated() {
		return fmt.Errorf("the pod has node %s", p.Node)
	}
	for _, v := range left {
		v.chosenBy = ""
		s.weigh(v)
	}
	a := s.requirement(p, now)
	d := s.remaining(p, a, left)
	err := required.Judge(a.Node, a.Ask, a.Params, d)
	for _, v := range left {
		v.chosenBy = p.UID
		s.weigh(v)
	}
	return err
}

// remaining is what is left of a decision. After a restart it is not known why
// each was chosen: if there is room by amounts, then for what filters say.
func (s *Store) remaining(p *pod, a *RequiredAttempt, left []*pod) required.Decision {
	d := required.Decision{Ask: a.Ask, Node: a.Node.Name, Outcome: victims.Preempt}
	known := p.asks.required
	if known != nil {
		d.FitsCalls = known.FitsCalls
		d.Selection = known.Selection
	}
	byFilters := s.requiredFree(p).Covers(p.Request)
	if known == nil && byFilters {
		d.FitsCalls = 1
	}
	for _, v := range left {
		at := slices.IndexFunc(a.Node.Pods, func(n required.Pod) bool { return n.UID == string(v.UID) })
		if at < 0 {
			continue // then it is on no node, and there is no need of it
		}
		victim := required.Victim{Pod: &a.Node.Pods[at], Class: required.Foreign, ForRoom: !byFilters}
		if known != nil {
			for i := range known.Victims {
				if known.Victims[i].UID == string(v.UID) {
					victim = known.Victims[i]
				}
			}
		}
		d.Victims = append(d.Victims, victim)
	}
	return d
}

// requiredFree is what will be free for an asker on its node once those who leave
// are gone and those before it are placed.
func (s *Store) requiredFree(p *pod) resources.Vector {
	n := s.nodes[p.RequiredNode]
	free := n.room()
	for _, v := range n.pods {
		if v.leaves() {
			free = free.Add(v.uses)
		}
	}
	for _, h := range s.holdersBefore(p) {
		free = free.Sub(h.Request)
	}
	return free
}

// noteRequired is what people are told on a victim.
func (s *Store) noteRequired(asker, v *pod, h *reservations.Hold) string {
	if d := asker.asks.required; d != nil {
		for i := range d.Victims {
			if d.Victims[i].UID == string(v.UID) {
				return d.VictimNote(i)
			}
		}
	}
	return fmt.Sprintf("preempted for %s/%s, which can run on node %s only (D4)", asker.Namespace, asker.Name, h.Node)
}

// queueOf is the path of a pod's queue; empty for a pod without one.
func (s *Store) queueOf(p *pod) string {
	if p.app == nil {
		return ""
	}
	return s.path(p.app.leaf)
}
