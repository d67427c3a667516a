package plans

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// AbortPlan keeps the victims of a node-bound pod that were not deleted. The node stays held.
func (x *NodeBound) AbortPlan(asker types.UID, why reasons.Reason, now time.Time) {
	p := x.Pods[asker]
	if h, ok := x.Preemption.Holds.Of(asker); p != nil && ok && h.Required {
		x.abortPlan(p, &h, x.holds.Left(&h), reasons.New(reasons.RoomAwaited, "node %s is held for the pod; %s", h.Node, why.Text), now)
	}
}

// abortPlan keeps the chosen victims that were not deleted. why is the reason that the
// preemptor waits.
func (x *NodeBound) abortPlan(p *model.Pod, h *reservations.Hold, left []*model.Pod, why reasons.Reason, now time.Time) {
	var chosen []types.UID
	for _, uid := range h.Chosen {
		if !slices.ContainsFunc(left, func(v *model.Pod) bool { return v.UID == uid }) {
			chosen = append(chosen, uid)
		}
	}
	x.holds.Rechoose(p, reservations.Hold{Chosen: chosen, Patient: true, Committed: h.Committed, Decision: x.decide(p, now)}, now)
	x.tell(p, output.WorkRecord, nil, now)
	x.states.ReturnBy(p, model.Latest(now, p.Asks.TriedAt.Add(model.AtMostEvery)))
	if p.State == state.Unschedulable || p.State == state.BackingOff {
		p.Reason = why
	}
}

// remaining is what is left of a decision. After a restart the reason for each victim is
// not known: if there is room by amounts, it is taken to be the filters.
func (x *NodeBound) remaining(p *model.Pod, a *output.RequiredAttempt, left []*model.Pod) daemonset.Decision {
	d := daemonset.Decision{Ask: a.Ask, Node: a.Node.Name, Outcome: planner.Preempt}
	known := p.Asks.Required
	if known != nil {
		d.FitsCalls = known.FitsCalls
		d.Selection = known.Selection
	}
	byFilters := x.Free(x.Cache.Nodes.Get(p.RequiredNode), p.UID).Covers(p.Request)
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
