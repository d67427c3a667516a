package plans

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// ApplyPlan holds the node as decided, or ends the hold.
func (x *Plans) ApplyPlan(uid types.UID, d *daemonset.Decision, now time.Time) (held bool, why reasons.Reason) {
	p, why := x.asker(uid)
	if why.Code == reasons.Starting {
		x.m.Pending.TooEarly.Note(uid, now)
	}
	if !why.None() {
		return p != nil && p.State.HasNode(), why
	}
	if _, why := x.m.Cache.Nodes.Unusable(d.Node); !why.None() {
		return false, x.awaitNode(p, why, time.Time{})
	}
	n := x.m.Cache.Nodes.Get(d.Node)
	asDecided := n.Generation() == p.Asker.SawNode
	h, _ := x.m.Preemption.Ledger.Of(uid)
	stale := x.holds.ReadBefore(p, d.Node)
	nothingChosen := d.Outcome == planner.Hold && d.Stopped == "" && len(h.Chosen) == 0
	timeUsedUp := x.ownTimeLeft(p, now) <= 0
	switch {
	case d.Outcome == daemonset.NoHold || d.Outcome == planner.Refuse:
		why = x.refuseNode(p, d, rejectedReason(x.m.Cache.Tree(), p, d), now)
	case (nothingChosen || timeUsedUp) && x.holds.AwaitsItsOwn(p, n):
		// The owner of these pods decides how long they stay, and a hold would keep room from all
		// others for that time.
		why = x.refuseNode(p, d, OwnLeave(n.Name()), now)
	default:
		held, why = x.holdNodeBound(p, d, now)
	}
	kind := output.StepRefused
	if held {
		kind = output.StepHeld
	}
	x.m.EnterStep(p, output.Step{Kind: kind, NodeBoundDecision: d, Reason: why}, now)
	if asDecided { // only this call changed the node since the decision
		p.Asker.SawNode = n.Generation()
	}
	if held && stale {
		x.states.ReturnBy(p, now)
	}
	if held || p.Foreign {
		x.RecheckNode(p)
	}
	return held, why
}

// OwnLeave is why a node is not held for an asker that fits once pods of its own are gone.
func OwnLeave(node string) reasons.Reason {
	return reasons.New(reasons.WaitingForRoom,
		"node %s has room for the pod once pods of its own namespace or queue that leave are gone; the node is not held for it meanwhile", node)
}

// refuseNode ends the plan without a hold, and ends the hold if there is one.
func (x *Plans) refuseNode(p *model.Pod, d *daemonset.Decision, why reasons.Reason, now time.Time) reasons.Reason {
	// again is zero if only a change of the node brings the pod back.
	var again time.Time
	if d.Stopped != planner.RuleExtender { // else the decision says nothing about the node
		x.holds.EndHold(p, reservations.GivenUp, why, now)
	}
	byUsage := d.Outcome == daemonset.NoHold && d.RejectedByUsage()
	if d.Stopped == planner.RuleExtender || byUsage { // until the extender answers, or other nodes change
		again = now.Add(x.m.Preemption.RetryInterval)
	}
	p.Asker.RetryAt = again
	p.Asker.Impossible = d.Stopped == planner.RuleTooLittle && !byUsage // amounts are final until the node changes, the filters' answer is not
	return x.awaitNode(p, why, again)
}

// rejectedReason is why the node of a node-bound asker is not held for it; for a max, with the
// amounts of now.
func rejectedReason(tree *queues.Draft, p *model.Pod, d *daemonset.Decision) reasons.Reason {
	if d.Stopped == daemonset.RuleMax {
		if v := queues.Admit(tree, p.App.Leaf, p.Request, queues.OnCommitted); !v.OK() {
			return v.Reason
		}
	}
	return output.NodeBoundRefusal(d)
}

// holdNodeBound holds the node for an asker, or keeps holding it, and marks the
// victims.
func (x *Plans) holdNodeBound(p *model.Pod, d *daemonset.Decision, now time.Time) (bool, reasons.Reason) {
	next := x.nodeHoldFor(p, d, now)
	switch old, held := x.m.Preemption.Ledger.Of(p.UID); {
	case !held:
		if err := x.beginNodeHold(p, d, next.Hold, now); err != nil {
			return false, reasons.New(reasons.HoldGivenUp, "%v", err)
		}
	default:
		x.keepNodeHold(p, d, &old, next.Hold, now)
	}
	why := next.why
	if h, _ := x.m.Preemption.Ledger.Of(p.UID); d.Stopped == "" && len(next.Chosen) == 0 && len(h.Chosen) > 0 && !h.Clear() {
		why = preemption.MakingRoom(&h) // earlier victims are still leaving
	}
	p.Reason, p.Asker.Activated = why, false
	x.setReturn(p, d, next.again, now)
	return true, why
}

// nodeHold is what a decision makes of the hold of a node-bound asker.
type nodeHold struct {
	// Hold has what the decision says of it: Decision, Note, and as Chosen only the victims
	// to choose now.
	reservations.Hold
	why   reasons.Reason // why the asker waits
	again time.Time      // when it comes back; zero if events of its victims or its node say when
}

// nodeHoldFor returns what a decision makes of the hold. It counts a loss of the asker, if there is
// one, and chooses the victims of the decision, if the pause of the asker and the limits of
// preemption allow them now.
func (x *Plans) nodeHoldFor(p *model.Pod, d *daemonset.Decision, now time.Time) nodeHold {
	next := nodeHold{
		Hold: reservations.Hold{Decision: x.newDecisionID(p, now)},
		why:  preemption.HeldReason(d),
	}
	if d.Stopped != "" {
		next.Note = d.Waiting()
	}
	if d.Stopped == daemonset.RuleDelay {
		next.again = now.Add(d.Wait)
	}
	if d.Outcome != planner.Preempt {
		return next
	}
	x.holds.CountTakenRoom(p, now)
	from, why := p.PlanFrom()
	if !from.After(now) {
		next.Chosen, why, from = x.takeVictims(d.Chosen(), now)
	}
	next.again = from
	if why.None() {
		return next
	}
	next.Note = "victims there are chosen as soon as the limits allow"
	next.why = reasons.New(reasons.RoomAwaited, "node %s is held for the pod; %s", d.Node, why.Text)
	if why.Code == reasons.PreemptionPaced {
		next.why.Code = why.Code
	}
	if from.IsZero() {
		next.again = now.Add(preemption.FirstTry)
	}
	return next
}

// newDecisionID returns a new ID for a decision.
func (x *Plans) newDecisionID(p *model.Pod, now time.Time) string {
	p.Asker.DecidedAt = preemption.Latest(now, p.Asker.DecidedAt.Add(1))
	return preemption.DecisionID(p.UID, p.Asker.DecidedAt)
}

// beginNodeHold begins the hold of an asker.
func (x *Plans) beginNodeHold(p *model.Pod, d *daemonset.Decision, h reservations.Hold, now time.Time) error {
	h.Node, h.Since, h.NodeBound = d.Node, p.Asker.NextHold(now), true
	if err := x.holds.PlaceHold(p, h, now); err != nil {
		return err
	}
	x.holds.Supersede(x.m.Cache.Nodes.Get(d.Node), now)
	x.deleteVictims(p, d, now)
	return nil
}

// deleteVictims has the victims of the hold deleted.
func (x *Plans) deleteVictims(p *model.Pod, d *daemonset.Decision, now time.Time) {
	p.Asker.NodeBoundDecision, p.Asker.Missed = d, 0
	x.queueWrite(p, output.WorkDeleteVictims, now)
}

// keepNodeHold keeps the hold of an asker and adds victims to it, if the decision has any. Earlier
// victims that leave or are gone for it stay in it, and so does the decision that has victims.
func (x *Plans) keepNodeHold(p *model.Pod, d *daemonset.Decision, old *reservations.Hold, h reservations.Hold, now time.Time) {
	more := len(h.Chosen) > 0
	if !more {
		h.Decision = old.Decision
	}
	for _, uid := range old.Chosen {
		if v := x.m.Pods[uid]; v == nil || v.On() == nil || v.ChosenBy == p.UID {
			h.Chosen = append(h.Chosen, uid)
		}
	}
	x.states.EndCycle(p)
	x.holds.Rechoose(p, h, now)
	switch {
	case more:
		x.deleteVictims(p, d, now)
	case d.Stopped == daemonset.RuleNoVictims && !now.Before(p.Asker.ToldAt.Add(x.m.Preemption.RetryInterval)):
		x.queueWrite(p, output.WorkTell, now) // D8: users are told of it again
	}
}

// setReturn sets when an asker that holds its node comes back, if anything but an event of
// its victims decides that.
func (x *Plans) setReturn(p *model.Pod, d *daemonset.Decision, again, now time.Time) {
	h, _ := x.m.Preemption.Ledger.Of(p.UID)
	switch {
	case !again.IsZero():
		x.states.ReturnBy(p, again)
	case d.Stopped == daemonset.RuleNoVictims:
		x.watchNode(p)
	case x.holds.Ready(p, &h):
		x.states.ReturnBy(p, x.holds.NextTry(p, &h, now))
	}
}

// RecheckNode lets an asker through soon if the node that it watches changed since its decision
// began: takeChanges does not bring back a pod in its cycle.
func (x *Plans) RecheckNode(p *model.Pod) {
	if n := x.m.Cache.Nodes.Get(p.RequiredNode); x.m.Preemption.Watches.Has(p.UID) && n != nil && n.Generation() != p.Asker.SawNode {
		x.states.ReturnBy(p, p.Asker.TriedAt.Add(preemption.AtMostEvery))
	}
}
