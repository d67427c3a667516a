package plans

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// The hold that is written on an asker is authoritative for every process that did not
// make the hold: the next process, and a standby. The process that made the hold uses its
// own state.

// RestoreHolds restores the holds that an earlier process has written, in the order in which
// they began. Running pods are placed before.
func (x *Plans) RestoreHolds(now time.Time) {
	var claimants []*model.Pod
	for _, p := range x.m.Pods {
		if p.Claim != nil {
			claimants = append(claimants, p)
		}
	}
	slices.SortFunc(claimants, func(a, b *model.Pod) int {
		return cmp.Or(a.Claim.Since.Compare(b.Claim.Since), cmp.Compare(a.UID, b.UID))
	})
	for _, p := range claimants {
		x.RestoreHold(p, now)
	}
}

// RestoreHold restores the hold that is written on a pod, or releases it if it cannot.
func (x *Plans) RestoreHold(p *model.Pod, now time.Time) {
	if p.Claim == nil || p.Asker.HoldsNode() || p.Foreign && p.Node == "" && p.MaybeDaemon {
		return
	}
	h := x.claimed(p)
	end, why := x.m.Cache.Nodes.Unusable(h.Node)
	switch {
	case p.State.HasNode():
		end, why = reservations.Bound, reasons.Reason{}
	case p.Foreign && !model.MayAskForeign(p.Pod):
		end, why = reservations.GivenUp, model.NoDaemonSet
	case p.App == nil && !p.Foreign:
		end, why = reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod has no queue")
	case end == "":
		if err := x.holds.PlaceHold(p, h, now); err != nil {
			end, why = reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "%v", err)
		}
	}
	if end != "" {
		h.Asker, h.Namespace, h.Name = p.UID, p.Namespace, p.Name
		x.holds.Release(p, h, &preemption.Ending{End: end, Node: p.Node, Why: why}, now)
		return
	}
	placed, _ := x.m.Preemption.Ledger.Of(p.UID)
	p.Asker.DecidedAt = preemption.DecidedAt(placed.Decision)
	x.m.EnterStep(p, output.Step{Kind: output.StepTakenUp, Hold: placed, Reason: p.Reason}, now)
	x.m.AddWork(output.Work{Ref: p.Ref(), Kind: output.WorkDeleteVictims, Hold: placed})
	if placed.NodeBound {
		x.holds.Supersede(x.m.Cache.Nodes.Get(placed.Node), now)
	} else {
		x.holds.WakeHolder(p, now)
	}
	if placed.NodeBound || !p.GroupIncomplete() {
		// The node may have changed since the hold was made, so the filters are asked. A node-bound
		// pod determines again which pods it waits for.
		x.states.ReturnBy(p, now)
	}
}

// claimed returns the hold that is written on a pod. A victim that is also in an earlier claim
// belongs to that one: one of the two holds had ended, and the process stopped before it removed
// the claim.
func (x *Plans) claimed(p *model.Pod) reservations.Hold {
	c := p.Claim
	h := reservations.Hold{
		Node: c.Node, Since: c.Since, ClearSince: c.ClearSince, Decision: c.Decision, NodeBound: p.RequiredNode != "",
	}
	if h.NodeBound && len(c.Victims) == 0 {
		h.Note = decidedAgain
	}
	committed := false
	for _, uid := range c.Victims {
		v := x.m.Pods[uid] // the deletes had begun if a victim is gone, or our delete would not change it
		committed = committed || v == nil || v.On() == nil || !x.m.GoesSooner(v)
		if v == nil || v.ChosenBy == "" {
			h.Chosen = append(h.Chosen, uid)
		}
	}
	if committed {
		h.LastDisruption = preemption.Latest(h.Since, preemption.DecidedAt(h.Decision))
	}
	return h
}

// IsAsClaimed tells whether a hold equals what is written on its asker. It does not if a victim
// that another hold had at the restore is free now.
func (x *Plans) IsAsClaimed(p *model.Pod, h *reservations.Hold) bool {
	c := p.Claim
	if c == nil || c.Node != h.Node || !c.Since.Equal(h.Since) || c.Decision != h.Decision {
		return false
	}
	return !slices.ContainsFunc(c.Victims, func(uid types.UID) bool {
		v := x.m.Pods[uid]
		return v != nil && v.On() != nil && v.ChosenBy == ""
	})
}

// StartLeading begins to lead: it restores what other processes have written, as after a restart,
// and queues the writes of all holds, because the earlier writer may have stopped before
// it was done.
func (x *Plans) StartLeading(now time.Time) {
	if !x.m.Standby {
		return
	}
	var work []output.Work
	for _, p := range x.m.SortedPods() {
		h, ok := x.m.Preemption.Ledger.Of(p.UID)
		switch {
		case ok && x.IsAsClaimed(p, &h):
			work = append(work, output.Work{Ref: p.Ref(), Kind: output.WorkDeleteVictims, Hold: h})
		case ok:
			x.holds.EndHold(p, reservations.Superseded, reasons.New(reasons.HoldSuperseded,
				"the process that led before has taken the hold of node %s back or changed it", h.Node), now)
		}
	}
	x.m.Standby, x.m.Out.Work = false, work
	x.m.Preemption.NodeBound.ResetAll(now) // while another process led, they could not be tried here
	if x.m.Started {
		x.RestoreHolds(now)
		x.states.RetryAllTooEarly(now)
	}
}
