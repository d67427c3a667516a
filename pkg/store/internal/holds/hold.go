package holds

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Holds begins and ends holds. Make one with New.
type Holds struct {
	m      *model.Model
	states *admission.States
}

// New returns the holds of the askers of a model.
func New(m *model.Model, states *admission.States) *Holds { return &Holds{m, states} }

// A hold goes this way. Only PlaceHold begins one and only FinishHold ends one:
//
//	        AcceptPlan        Commit             the last victim is gone,
//	none  ───────────► held ───────────► held ─────────────────────► let through
//	  ▲                 │   the executor   │  or node and quotas have    │
//	  │                 │   checks again   │  room                       │ Assume, bind
//	  │   EndHold       ▼                  ▼                             ▼
//	  └──────────── the plan failed, or the room was taken,            bound: the
//	                or the node is gone, or a time-out                 hold ends
//
// While it waits, an asker with a hold is Unschedulable, or BackingOff if it has a time. It is
// Admitted and Scheduling while it is tried on its node, and Assumed until its bind is seen. Once
// victims are chosen for it, the scheduler's queueing hints do not move it. The store lets it
// through when there is room, and retries a few times, because the scheduler's cache may learn
// later than the store that the last victim is gone.
//
// A hold ends for these reasons (reservations.End):
//
//	Bound              the asker is bound
//	Deleted            the asker is gone
//	TimedOut           it was not used in time
//	NodeGone           the node is gone
//	NodeUnschedulable  the node is cordoned, or the filters refuse it whichever pods leave
//	Superseded         the asker found room elsewhere, other pods took the room, a node-bound
//	                   pod needs it, or another process decides
//	GivenUp            the plan is not lawful any more or could not be carried out, the node is
//	                   not held after a new decision, a limit of a user or application refuses
//	                   it, or the asker, its queue or its PodGroup changed, or its gang may not start

// PlaceHold begins a hold of a pending pod. The chosen pods count as leaving from now on.
func (x *Holds) PlaceHold(p *model.Pod, h reservations.Hold, now time.Time) error {
	h.Asker, h.Namespace, h.Name = p.UID, p.Namespace, p.Name
	began := h.Since
	if began.After(now) { // a claim may say so, and clocks differ
		began = now
	}
	h.LatestFrom = began.Add(x.m.Preemption.HoldTimeout)
	if h.NodeBound { // before that, no victim may be chosen
		h.LatestFrom = h.LatestFrom.Add(x.m.Preemption.NodeBoundParams.StartDelay)
	}
	h.Request, h.Priority, h.Created, h.Group = p.Request, p.Priority, p.Created, p.GroupInHolds()
	h.Awaited = x.Awaited(p, &h)
	x.noteOwn(p, &h, began)
	before := x.m.Preemption.Ledger.RequestOnly(h.Node)
	if err := x.m.Preemption.Ledger.Place(h); err != nil {
		x.m.Preemption.OwnTime.End(p.UID, began)
		return err
	}
	x.m.History.NoteHold(output.HoldBegan, &h)
	for _, uid := range h.Chosen {
		x.markVictim(x.m.Pods[uid], p.UID)
	}
	x.states.Disarm(p)
	p.Asker.Missed, p.Asker.HeldFrom, p.Asker.ArrivalsAtHold = 0, began, x.m.Cache.Nodes.Arrivals()
	x.states.SetHoldsNode(p, true)
	x.states.EndCycle(p)
	x.m.Pending.Classes.Leave(&p.EquivalenceClass, p.State)
	x.m.Recharge(p)
	x.m.Touch(x.m.Cache.Nodes.Get(h.Node))
	p.Reason = preemption.MakingRoom(&h)
	x.wakeIfLessIsKept(h.Node, before, p.UID, now)
	return nil
}

// markVictim makes a pod a victim of an asker, or of none if asker is empty. A pod without a
// node is gone already.
func (x *Holds) markVictim(v *model.Pod, asker types.UID) {
	if v != nil && v.On() != nil && v.ChosenBy != asker {
		x.m.SetChosenBy(v, asker)
		x.m.TouchPod(v)
	}
}

// spare unmarks the victims of a hold that are not in keep. It returns those that no plan counts on
// now, because they were not deleted or linger.
func (x *Holds) spare(h *reservations.Hold, keep []types.UID) (stay []*model.Pod) {
	for _, uid := range h.Chosen {
		if v := x.m.Pods[uid]; v != nil && v.ChosenBy == h.Asker && !slices.Contains(keep, uid) {
			if x.markVictim(v, ""); v.On() != nil && !x.m.CountsAsLeaving(v) {
				stay = append(stay, v)
			}
		}
	}
	return stay
}

// EndHold ends the hold of a pod, if it has one. Victims that were not deleted stay.
func (x *Holds) EndHold(p *model.Pod, end reservations.End, why reasons.Reason, now time.Time) {
	x.FinishHold(p, preemption.Ending{End: end, Node: p.Node, Why: why}, now)
}

// FinishHold ends the hold of a pod as e says, if it has one. The pod goes on without it,
// its victims that were not deleted stay, and the claim is taken back.
func (x *Holds) FinishHold(p *model.Pod, e preemption.Ending, now time.Time) {
	h, ok := x.m.Preemption.Ledger.End(p.UID)
	if !ok {
		return
	}
	x.m.Preemption.OwnTime.End(p.UID, now)
	if e.Node == h.Node && h.OnlyThisNode() {
		p.Asker.Losses.PlacedAt = now
	}
	x.Release(p, h, &e, now)
	x.m.History.NoteHold(output.HoldEnded, &h)
	p.Asker.Decision, p.Asker.NodeBoundDecision = nil, nil
	p.NodesGeneration = 0 // its cycles looked at its node only
	x.states.SetHoldsNode(p, false)
	x.m.Pending.BlockedHolders.Remove(p)
	x.m.Preemption.Watches.Remove(p.UID)
	for _, v := range x.spare(&h, nil) {
		x.Stays(v, now)
	}
	x.m.Recharge(p)
	x.m.Freed(h.Node)
	if p.State.HasSlot() && p.PodGroup != nil {
		x.m.Pending.PodGroups.Touch(p.PodGroup) // from now on it starts only with its group
	}
	x.WakeHolders(h.Node, p.UID, now)
	if e.Node != h.Node {
		x.states.NoteFreedUnseen(pending.FreedPod{UID: p.UID, Node: h.Node, Nominated: true, When: now})
	}
	x.retryWithoutHold(p, e.Why, now)
}

// Release queues the removal of the claim of a hold that ended or could not be restored. If
// the hold is lost, Release counts the loss, and its reason then includes the pause.
func (x *Holds) Release(p *model.Pod, h reservations.Hold, e *preemption.Ending, now time.Time) {
	p.EnsureAsker()
	losses := 0
	if !x.m.Standby && e.IsLost(&h, p.GroupIncomplete()) { // a standby cannot know what is lost
		mayBeIts := e.End != reservations.TimedOut && e.End != reservations.Deleted && e.Failed != preemption.CallFailed
		undone := e.Failed == preemption.PlanUndone || mayBeIts && x.groupTook(p, &h)
		e.Why, losses = x.countLoss(p, e.Why, undone, now)
	}
	p.Asker.LastHoldSince = h.Since
	x.m.EnterStep(p, output.Step{Kind: output.StepEnded, Hold: h, Ended: e.End, Reason: e.Why, Losses: losses}, now)
	x.m.AddWork(output.Work{Ref: p.Ref(), Kind: output.WorkRelease, Hold: h, Ended: e.End, Reason: e.Why})
}

// retryWithoutHold sets when a pod that lost its hold and still needs a node is tried
// again, and when the next plan for it may be made.
func (x *Holds) retryWithoutHold(p *model.Pod, why reasons.Reason, now time.Time) {
	if p.App == nil && !p.Foreign || p.State.HasNode() {
		return
	}
	if p.State == state.Unschedulable || p.State == state.BackingOff && !p.OnlyTimeHelps {
		p.Reason = why
		x.states.ReturnBy(p, now.Add(x.m.Options.Backoff(1)))
		if p.App != nil && p.RequiredNode == "" && p.RetryAsk == nil {
			x.states.EnterRetryOrder(p, &x.m.Pending.RetryEarly) // free room of other nodes goes to it first
		}
	}
	from, _ := p.PlanFrom()
	p.Asker.RetryAt = preemption.Latest(from, now.Add(preemption.AtMostEvery))
	x.states.Arm(p, p.Asker.RetryAt)
}

// EndNode ends all holds of a node.
func (x *Holds) EndNode(node string, end reservations.End, now time.Time) {
	code := reasons.HoldNodeGone
	if end == reservations.NodeUnschedulable {
		code = reasons.HoldNodeUnschedulable
	}
	for _, h := range x.m.Preemption.Ledger.On(node) {
		x.EndHold(x.m.Pods[h.Asker], end, reasons.New(code, "node %s is no longer held for the pod", node), now)
	}
}

// Supersede ends those ordinary holds of a node that no longer fit there because of a node-bound
// pod. It repeats after each one: the victims of an ended hold may stay, and then another hold may
// not fit either.
func (x *Holds) Supersede(n *cache.Node, now time.Time) {
	for _, h := range x.m.Preemption.Ledger.On(n.Name()) {
		p := x.m.Pods[h.Asker]
		if h.NodeBound || p.State.HasNode() || x.m.Free(n, h.Asker).Covers(h.Request) {
			continue
		}
		x.EndHold(p, reservations.Superseded, reasons.New(reasons.HoldSuperseded,
			"a pod that can run on node %s only takes the room there", n.Name()), now)
		x.Supersede(n, now)
		return
	}
}

// Rechoose puts a new decision about the hold of an asker into force, whether its victims are others
// or not. Pods that are no longer victims and were not deleted stay.
func (x *Holds) Rechoose(p *model.Pod, h reservations.Hold, now time.Time) {
	old, _ := x.m.Preemption.Ledger.Of(p.UID)
	before := x.m.Preemption.Ledger.RequestOnly(old.Node)
	stay := x.spare(&old, h.Chosen)
	for _, uid := range h.Chosen {
		x.markVictim(x.m.Pods[uid], p.UID)
	}
	h.Node = old.Node
	h.Awaited = x.Awaited(p, &h)
	if slices.ContainsFunc(h.Awaited, func(uid types.UID) bool { return !slices.Contains(old.Awaited, uid) }) {
		before = nil // more room will be free beside it
	}
	x.noteOwn(p, &h, now)
	x.m.Preemption.Ledger.Choose(p.UID, h, now)
	x.wakeIfLessIsKept(h.Node, before, p.UID, now)
	for _, v := range stay {
		x.Stays(v, now)
	}
}
