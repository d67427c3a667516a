package store

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// AbortPlan says that no victim was deleted for a preemptor that requires its node, because
// a victim is being bound and cannot be deleted now. The node stays held, and another
// decision is made a second after the last one.
func (s *Store) AbortPlan(asker types.UID, why reasons.Reason, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	p := s.pods[asker]
	if h, ok := s.preemption.Holds.Of(asker); p != nil && ok && h.Required {
		s.abortPlan(p, &h, s.left(&h), reasons.New(reasons.RoomAwaited, "node %s is held for the pod; %s", h.Node, why.Text), now)
	}
}

// abortPlan keeps the chosen victims that were not deleted. why is the reason that the
// preemptor waits.
func (s *Store) abortPlan(p *pod, h *reservations.Hold, left []*pod, why reasons.Reason, now time.Time) {
	var chosen []types.UID
	for _, uid := range h.Chosen {
		if !slices.ContainsFunc(left, func(v *pod) bool { return v.UID == uid }) {
			chosen = append(chosen, uid)
		}
	}
	s.rechoose(p, reservations.Hold{Chosen: chosen, Patient: true, Committed: h.Committed, Decision: s.decide(p, now)}, now)
	s.tell(p, WorkRecord, nil, now)
	s.rest(p, latest(now, p.asks.TriedAt.Add(atMostEvery)))
	if p.state == state.Unschedulable || p.state == state.BackingOff {
		p.reason = why
	}
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

// queue is the path of a pod's queue; empty for a pod without one.
func (p *pod) queue(tree *queues.Draft) string {
	if p.app == nil {
		return ""
	}
	return tree.Queue(p.app.Leaf).Path
}
