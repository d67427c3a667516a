package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Claim accepts a plan: the node is held for the preemptor, its victims count as leaving
// and its request as arriving, and the executor gets work. The reason is none, or says
// what prevents the plan.
func (s *Store) Claim(uid types.UID, d *planner.Decision, now time.Time) reasons.Reason {
	s.mu.Lock()
	defer s.unlock(now)
	s.preemption.Watches.PlanEnds()
	p, known := s.pods[uid]
	if !known || p.app == nil {
		return reasons.Brief(reasons.Starting)
	}
	why := s.claim(p, d, now)
	if !why.None() {
		s.enterStep(p, Step{Kind: StepRefused, Decision: d, Reason: why}, now)
	}
	return why
}

// claim is Claim for a pod of a queue, under the lock.
func (s *Store) claim(p *pod, d *planner.Decision, now time.Time) reasons.Reason {
	switch {
	case p.state.HasNode():
		return reasons.New(reasons.HoldGivenUp, "the pod has a node by now")
	case p.asks.Holds():
		h, _ := s.preemption.Holds.Of(p.UID)
		return preemption.MakingRoom(&h)
	case s.mayNotHold(p):
		return notLeading()
	}
	if _, why := s.cache.Nodes.Unusable(d.Node); !why.None() {
		return why
	}
	chosen, why := s.stillThere(d.Chosen())
	if !why.None() {
		return why
	}
	if at := s.preemption.VictimsFrom(len(chosen), now); at.After(now) {
		s.history.say(p, reasons.PreemptionPaced, now.Add(s.preemption.RetryInterval))
		s.arm(p, at)
		return s.preemption.RoundIsFull()
	}
	going := make([]*pod, 0, len(chosen))
	for _, uid := range chosen {
		going = append(going, s.pods[uid])
	}
	byFilters := uidsOf(s.idle(p, s.cache.Nodes.Get(d.Node), going))
	since := latest(now, p.asks.Ended.Add(1)) // distinguishes it from an earlier hold
	h := reservations.Hold{Node: d.Node, Since: since, Chosen: chosen, Decision: preemption.DecisionID(p.UID, since)}
	if err := s.placeHold(p, h); err != nil {
		return reasons.New(reasons.HoldGivenUp, "%v", err)
	}
	s.preemption.VictimsChosen(len(chosen), now)
	p.asks.Decision, p.asks.ByFilters = d, byFilters
	p.sweeping().Restart()
	placed, _ := s.preemption.Holds.Of(p.UID)
	s.enterStep(p, Step{Kind: StepHeld, Hold: placed, Decision: d, Reason: p.reason}, now)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkDisrupt, Hold: placed, Decision: d})
	return reasons.Reason{}
}

// stillThere returns the victims of a plan if none of them is gone or leaving.
func (s *Store) stillThere(chosen []*planner.Pod) ([]types.UID, reasons.Reason) {
	out := make([]types.UID, 0, len(chosen))
	for _, v := range chosen {
		p := s.pods[types.UID(v.UID)]
		if p == nil || p.On() == nil || p.leaves() {
			return nil, reasons.New(reasons.HoldGivenUp, "pod %s/%s went while the plan was made", v.Namespace, v.Name)
		}
		out = append(out, p.UID)
	}
	return out, reasons.Reason{}
}

// Disrupted says that all victims of a preemptor have been deleted.
func (s *Store) Disrupted(asker types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if p := s.pods[asker]; p != nil {
		h, ok := s.preemption.Holds.Of(asker)
		if ok {
			s.enterStep(p, Step{Kind: StepDisrupted, Hold: h}, now)
		}
		if ok && h.Patient {
			return // it has its own deadline, or waits for a change of its node
		}
		s.wakeHolder(p, now)
	}
}

// GiveUp ends a plan that failed to execute. Victims that were not deleted stay.
func (s *Store) GiveUp(asker types.UID, why reasons.Reason, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if p := s.pods[asker]; p != nil {
		s.finishHold(p, preemption.Ending{End: reservations.GivenUp, Node: p.Node, Why: why, Failed: true}, now)
	}
}
