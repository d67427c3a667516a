package store

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// commitRequired checks again what is left of a decision. If it does not hold any more,
// no victim is deleted, the node stays held, and another decision is made at once.
func (s *Store) commitRequired(p *pod, h *reservations.Hold, now time.Time) ([]Victim, reasons.Reason) {
	left := s.left(h)
	err := s.rejudgeRequired(p, left, now)
	if err != nil {
		why := reasons.New(reasons.RoomAwaited, "node %s is held for the pod; things changed since it was decided who goes: %s", h.Node, oneLine(err))
		s.callOff(p, h, left, now)
		s.enterStep(p, Step{Kind: StepCalledOff, Hold: *h, Reason: why}, now)
		if p.state == state.Unschedulable || p.state == state.BackingOff {
			p.reason = why
		}
		return nil, why
	}
	s.preemption.Holds.Commit(p.UID, now)
	out := make([]Victim, 0, len(left))
	for _, v := range left {
		out = append(out, Victim{Ref: v.Ref(), Node: v.Node, Queue: s.queueOf(v), Note: s.noteRequired(p, v, h), Grace: s.preemption.Grace(v.Pod)})
		s.noteSaid(Chosen, v, out[len(out)-1].Note)
	}
	s.enterStep(p, Step{Kind: StepCommitted, Going: out}, now)
	return out, reasons.Reason{}
}

// AbortPlan says that no victim was deleted for a preemptor that requires its node, because
// a victim is being bound and cannot be deleted now. The node stays held, and another
// decision is made a second after the last one.
func (s *Store) AbortPlan(asker types.UID, why reasons.Reason, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	p := s.pods[asker]
	if h, ok := s.preemption.Holds.Of(asker); p != nil && ok && h.Required {
		s.callOff(p, &h, s.left(&h), now)
		if p.state == state.Unschedulable || p.state == state.BackingOff {
			p.reason = reasons.New(reasons.RoomAwaited, "node %s is held for the pod; %s", h.Node, why.Text)
		}
	}
}

// callOff keeps the chosen victims that were not deleted.
func (s *Store) callOff(p *pod, h *reservations.Hold, left []*pod, now time.Time) {
	var chosen []types.UID
	for _, uid := range h.Chosen {
		if !slices.ContainsFunc(left, func(v *pod) bool { return v.UID == uid }) {
			chosen = append(chosen, uid)
		}
	}
	s.rechoose(p, reservations.Hold{Chosen: chosen, Patient: true, Committed: h.Committed, Decision: s.decide(p, now)}, now)
	s.tell(p, WorkRecord, nil, now)
	s.rest(p, latest(now, p.asks.TriedAt.Add(atMostEvery)))
}

// rejudgeRequired checks the rules for what is left of a decision, on a state without the
// decision.
func (s *Store) rejudgeRequired(p *pod, left []*pod, now time.Time) error {
	if len(left) == 0 {
		return nil
	}
	if p.state.HasNode() {
		return fmt.Errorf("the pod has node %s", p.Node)
	}
	for _, v := range left {
		s.chosen(v, "")
		s.weigh(v)
	}
	a := s.requirement(p, now)
	err := daemonset.Judge(a.Node, a.Ask, a.Params, s.remaining(p, a, left))
	for _, v := range left {
		s.chosen(v, p.UID)
		s.weigh(v)
	}
	return err
}

// remaining is what is left of a decision. After a restart the reason for each victim is
// not known: if there is room by amounts, it is taken to be the filters.
func (s *Store) remaining(p *pod, a *RequiredAttempt, left []*pod) daemonset.Decision {
	d := daemonset.Decision{Ask: a.Ask, Node: a.Node.Name, Outcome: planner.Preempt}
	known := p.asks.Required
	if known != nil {
		d.FitsCalls = known.FitsCalls
		d.Selection = known.Selection
	}
	byFilters := s.requiredFree(p).Covers(p.Request)
	if known == nil && byFilters {
		d.FitsCalls = 1
	}
	for _, v := range left {
		at := slices.IndexFunc(a.Node.Pods, func(n daemonset.Pod) bool { return n.UID == string(v.UID) })
		if at < 0 {
			continue // it is on no node, so it is not needed
		}
		victim := daemonset.Victim{Pod: &a.Node.Pods[at], Class: daemonset.Foreign, ForRoom: !byFilters}
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

// requiredFree is what will be free for a preemptor on its node once leaving pods are
// gone and the holders before it are placed.
func (s *Store) requiredFree(p *pod) resources.Vector {
	n := s.cache.Nodes.Get(p.RequiredNode)
	free := n.Room()
	for _, v := range s.podsOn(n) {
		if v.leaves() {
			free = free.Add(v.Uses())
		}
	}
	for _, h := range s.holdersBefore(p) {
		free = free.Sub(h.Request)
	}
	return free
}

// noteRequired is the message that a victim gets.
func (s *Store) noteRequired(asker, v *pod, h *reservations.Hold) string {
	if d := asker.asks.Required; d != nil {
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
