package admission

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// States moves pods from one state to another and keeps the books right.
type States struct {
	m      *model.Model
	demand *Demand
}

// NewStates returns the transitions of the pods of a model.
func NewStates(m *model.Model, demand *Demand) *States { return &States{m, demand} }

// Enter removes a pod from the structures of its state (Withdraw), and sets the next state. Every
// state change goes through it or SetState, so that counts stay right. Only the first state is set
// without it: NoQueue by a zero record, and Unschedulable for a pod of no queue (lifecycle).
func (x *States) Enter(p *model.Pod, to state.State) {
	x.Withdraw(p, to)
	if to.WaitsForNode() || to == state.GroupBlocked {
		p.LargerRequest = nil // its cycle is over
	}
	x.m.History.Changed(p)
	x.SetState(p, to)
}

// Withdraw removes a pod from the structures of its state. Its next state says what happens to the
// charge of a slot.
//
//	Queued                       the order
//	Admitted, Scheduling         the window, the slot of its application, the deadline of the slot,
//	                             the plan in flight; the charge of the slot, unless an
//	                             allocation takes its place
//	Unschedulable, BackingOff    the deadline of the back-off, the retry order
//	NoQueue, GroupBlocked,       nothing here: LeaveAllocated takes back the charge of an
//	Assumed, Bound               allocation
//
// The sort key of a slot stays, because the pod may still be in the scheduler's heap. Where it
// is not there, the caller removes the key.
func (x *States) Withdraw(p *model.Pod, to state.State) {
	switch p.State {
	case state.Queued:
		x.m.Pending.Order.Remove(p.Ask)
		p.Ask = nil
	case state.Admitted, state.Scheduling:
		x.leaveSlot(p, to)
	case state.Unschedulable, state.BackingOff:
		x.m.Pending.Timers.Clear(&p.Timer)
		if p.RetryAsk != nil {
			p.RetryIn.Remove(p.RetryAsk)
			p.RetryAsk, p.RetryIn = nil, nil
		}
	}
}

// SetState sets the state of a withdrawn pod, or moves a pod from Admitted to Scheduling, which
// keeps its slot. Readers are told by Enter and Unplace.
func (x *States) SetState(p *model.Pod, to state.State) {
	from := p.State
	x.m.Pending.Transitions.Note(from, to)
	p.State = to
	x.updateMember(p)
	x.m.History.Tally(p)
	if p.RequiredNode != "" {
		x.m.Preemption.NodeBound.Note(p.UID)
	}
	x.m.Pending.Classes.Move(p.EquivalenceClass, from, to)
}

// ToQueued moves a pod from any state without a node to Queued.
func (x *States) ToQueued(p *model.Pod) {
	x.Enter(p, state.Queued)
	p.Ask = x.m.Pending.Order.Push(p.App.Ordered, p.AskKey(), p.Request, p.EquivalenceClass.Hash())
}

// putBack moves a pod to Queued and removes its sort key: a later turn has another one.
func (x *States) putBack(p *model.Pod) {
	x.ToQueued(p)
	x.m.Pending.Keys.Remove(p.UID)
}

// takeSlot moves a pod to Admitted. An asker with a hold is charged as arriving and
// therefore not as admitted.
func (x *States) takeSlot(p *model.Pod, now time.Time) {
	x.Enter(p, state.Admitted)
	x.m.History.Reports.Admitted(p.Report, now)
	x.m.Pending.Window.Enter(p, p.App.Leaf)
	p.App.AddSlots(1)
	x.m.Recharge(p)
	p.ReopenedAtAdmission = x.m.Pending.Classes.Limit.Reopened()
	x.StartLease(p, now)
	x.m.Pending.Keys.Add(p.UID, queues.Rank(x.m.Cache.Tree(), p.App.Leaf, p.Priority), now.UnixNano())
}

// StartLease starts the lease of a pod with a slot, from the beginning.
func (x *States) StartLease(p *model.Pod, now time.Time) {
	x.m.Pending.Timers.Set(&p.Timer, now.Add(x.m.Options.Lease(p, x.m.Pending.Window.Taken()-1)))
}

// leaveSlot is Withdraw for a pod with a slot. A pod that does not go on to a node frees its
// room for other pods.
func (x *States) leaveSlot(p *model.Pod, to state.State) {
	p.Asker.RefusalEndsCycle = false
	p.App.AddSlots(-1)
	x.m.Pending.Window.Leave(p)
	x.m.Pending.Timers.Clear(&p.Timer)
	x.m.PreemptionQueue.End(p.UID)
	x.KeepArmed(p)
	if !to.HasNode() {
		x.m.Charge(p, p.Amount(), p.In()&^cache.Admitted)
	}
}

// ToUnschedulable moves a pod to Unschedulable after a cycle, or from Assumed (already
// uncharged).
func (x *States) ToUnschedulable(p *model.Pod, why reasons.Reason, now time.Time) {
	x.Enter(p, state.Unschedulable)
	p.Reason, p.OnlyTimeHelps, p.GaveWay = why, why.Code == reasons.BackingOff, 0
	if why.Code != reasons.SchedulingGated && !decidedBefore(x.m.Cache.Nodes.Get(p.RequiredNode), p) {
		x.m.Freed(x.m.Preemption.NodeBound.Tried(p.UID, now))
	}
	p.Failed = &output.Failures{Count: p.Failed.Attempts() + 1, Last: now}
	p.BackoffEnds = now.Add(x.m.Options.Backoff(p.Failed.Attempts()))
	if p.OnlyTimeHelps { // a cycle for a plan would end the same way
		p.Asker.RetryAt = preemption.Latest(p.Asker.RetryAt, p.BackoffEnds)
	}
}

// decidedBefore tells whether the filters may judge the required node of a pod differently since
// the last decision for it. plans.RecheckNode then brings the pod back soon, so this cycle is not
// counted as a try. The decision is compared and not the begin of the cycle (as in
// holds.ReadBefore), because a cycle that saw the change is a try.
func decidedBefore(n *cache.Node, p *model.Pod) bool {
	return n != nil && p.Asker.SawNode > 0 && n.RefilteredSince(p.Asker.SawNode)
}

// ToAllocated makes a pod assumed or bound. Its admitted or pending charge becomes the
// allocation.
func (x *States) ToAllocated(p *model.Pod, to state.State, node string, now time.Time) {
	x.m.Pending.Keys.Remove(p.UID)
	x.m.Pending.Classes.Leave(&p.EquivalenceClass, p.State)
	x.demand.Leave(p)
	x.Enter(p, to)
	x.Disarm(p)
	p.Node = node
	x.m.Charge(p, p.Request, p.In()&^(cache.Pending|cache.Admitted)|cache.Allocated)
	x.m.PlaceOn(p, node, p.Amount())
	x.m.History.NotePod(output.Allocated, p)
	x.m.Recharge(p)
	if p.Asker.HoldsNode() {
		x.m.Preemption.Ledger.SetPlaced(p.UID, true)
		x.m.Freed(node)
	}
	x.m.History.Counts.Allocated++
	if to == state.Bound {
		x.m.History.Begin(p.App, now)
	}
}

// LeaveAllocated takes back the charge of an assumed or bound pod, and takes it off its
// node. The pod is no victim any more. The caller tells the ledger of holds (Holds.Gone).
func (x *States) LeaveAllocated(p *model.Pod) {
	x.m.History.NotePod(output.Released, p)
	x.m.SetChosenBy(p, "")
	x.m.PlaceOn(p, "", resources.Vector{})
	x.m.Charge(p, p.Amount(), 0)
	x.m.History.Counts.Released++
}

// Requeue moves a pod from Unschedulable to Queued, or to BackingOff while its back-off
// lasts. No pod is admitted before all pods of the same event are back; see Returning of
// package store.
func (x *States) Requeue(p *model.Pod, now time.Time) {
	if p.Asker.HoldsNode() { // holds bypass the order
		x.BackOff(p, preemption.Latest(p.BackoffEnds, now))
		return
	}
	x.m.Pending.NoteReturn(now)
	if !p.BackoffEnds.After(now) {
		x.ToQueued(p)
		return
	}
	x.BackOff(p, p.BackoffEnds)
	if !p.OnlyTimeHelps {
		x.EnterRetryOrder(p, &x.m.Pending.RetryEarly)
	}
}

// RequeueRefused puts a pod that a quota refused back into the order, where its group waits for
// room.
func (x *States) RequeueRefused(p *model.Pod) {
	if p.App != nil && p.State != state.Queued && !p.State.HasNode() {
		x.ToQueued(p)
	}
	x.m.Pending.Keys.Remove(p.UID)
}

// NoteFreedUnseen notes that a pod no longer uses a node as before.
func (x *States) NoteFreedUnseen(l pending.FreedPod) {
	if x.m.Started {
		x.m.Pending.FreedUnseen.Add(l)
	}
}

// Expire ends the lease of a slot without a result of the pod's cycle. The pod is treated
// as failed, so that others can go on, and comes back after its back-off.
func (x *States) Expire(p *model.Pod, now time.Time) {
	x.ToUnschedulable(p, reasons.New(reasons.BackingOff, "the pod was let through, and its scheduling cycle had no result in time"), now)
	x.BackOff(p, now.Add(x.m.Options.MaxBackoff))
}

// BackOff makes an unschedulable pod back off until a time.
func (x *States) BackOff(p *model.Pod, until time.Time) {
	x.Enter(p, state.BackingOff)
	x.m.Pending.Timers.Set(&p.Timer, until)
}

// ReturnBy makes a pod come back at a time if it is Unschedulable, or BackingOff with a
// later deadline.
func (x *States) ReturnBy(p *model.Pod, until time.Time) {
	switch {
	case p.State == state.Unschedulable:
		x.BackOff(p, until)
	case p.State == state.BackingOff && until.Before(p.Timer.When()):
		x.m.Pending.Timers.Set(&p.Timer, until)
	}
}

// EndCycle makes a pod Unschedulable without a result of its cycle, because a node is held
// for it.
func (x *States) EndCycle(p *model.Pod) {
	x.NoteRefusal(p)
	if p.State == state.Unschedulable {
		return
	}
	x.Enter(p, state.Unschedulable)
	x.m.Pending.Keys.Remove(p.UID)
}

// NoteRefusal notes which quota refuses an asker with a hold, so that it is tried when
// that quota has more room. It tells whether one does.
func (x *States) NoteRefusal(p *model.Pod) bool {
	if p.App == nil || !p.Asker.HoldsNode() {
		return false
	}
	v := x.m.CheckPodQuota(p, queues.OnAllocated)
	x.m.Pending.BlockedHolders.Set(p, v)
	return !v.OK()
}
