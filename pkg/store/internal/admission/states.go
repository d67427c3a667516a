package admission

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
	"k8s.io/apimachinery/pkg/types"
)

// Confirmed checks whether an assumed pod runs as it was assumed.
func (x *States) Confirmed(p *model.Pod, event *objects.Pod, now time.Time) {
	had := p.Had()
	p.AssumedRequest = nil
	if p.Node != event.Node || !event.Request.Covers(had) {
		x.Lose(pending.LostPod{UID: p.UID, Node: p.Node, Request: had.Add(p.Uncounted), When: now})
	}
}

// Enter sets the state of a pod. Every state change goes through it or SetState, so that
// counts stay right.
func (x *States) Enter(p *model.Pod, to state.State) {
	if to.WaitsForNode() || to == state.GroupBlocked {
		p.AssumedRequest = nil // its cycle is over
	}
	x.History.Changed(p)
	x.SetState(p, to)
}

// SetState is enter for a change that readers do not see.
func (x *States) SetState(p *model.Pod, to state.State) {
	from := p.State
	if from == state.Unschedulable {
		x.LeaveLane(p)
	}
	x.Pending.Transitions.Note(from, to)
	p.State = to
	x.updateMate(p, p.Asks.Holds())
	x.History.Tally(p)
	x.Pending.Classes.Move(p.EquivalenceClass, from, to)
}

// ToWaiting: any state without a node to Queued.
func (x *States) ToWaiting(p *model.Pod) {
	x.Enter(p, state.Queued)
	p.Ask = x.Pending.Order.PushKind(p.App.Ordered, p.AskKey(), p.Request, p.AskKind())
}

// LeaveOrder takes a waiting pod out of the order.
func (x *States) LeaveOrder(p *model.Pod) {
	x.Pending.Order.Remove(p.Ask)
	p.Ask = nil
}

// toAdmitted: Queued to Admitted.
func (x *States) toAdmitted(p *model.Pod, now time.Time) {
	x.LeaveOrder(p)
	x.admit(p, now)
}

// admit: a pod that is out of the order becomes admitted. A preemptor with a hold is
// charged as arriving and therefore not as admitted.
func (x *States) admit(p *model.Pod, now time.Time) {
	x.Enter(p, state.Admitted)
	x.History.Reports.Admitted(p.Report, now)
	x.Pending.Window.Enter(p)
	if !p.Is(cache.Arriving) {
		x.Charge(p, p.Amount(), p.In()|cache.Admitted)
	}
	p.App.AddSlots(1)
	x.Count(p.App)
	p.Hopes = x.Pending.Classes.Limit.Reopened()
	x.Pending.Timers.Set(&p.Timer, now.Add(x.Options.Lease(p)))
	x.Pending.Keys.Add(p.UID, queues.Rank(x.Cache.Tree(), p.App.Leaf, p.Priority), now.UnixNano())
}

// leaveSlot takes an admitted pod out of the window. The caller takes back the admitted
// charge. The key stays, because the pod may still be in the scheduler's heap; a caller
// that knows it is not there deletes the key.
func (x *States) leaveSlot(p *model.Pod) {
	p.Asks.OverQuota = false
	p.App.AddSlots(-1)
	x.Pending.Window.Leave(p)
	x.Pending.Timers.Clear(&p.Timer)
	x.Asking.End(p.UID)
	x.KeepAsking(p)
}

// Vacate takes an admitted pod that does not go on to a node out of the window and frees
// its room for other pods.
func (x *States) Vacate(p *model.Pod) {
	x.leaveSlot(p)
	x.Charge(p, p.Amount(), p.In()&^cache.Admitted)
	x.Count(p.App)
	x.Pending.Release(x.Cache.Tree(), p.App.Leaf)
}

// ToParked: a state with a slot (already taken back) or Assumed (already uncharged) to
// Unschedulable.
func (x *States) ToParked(p *model.Pod, why reasons.Reason, now time.Time) {
	x.Enter(p, state.Unschedulable)
	p.Reason, p.Erred, p.GaveWay = why, why.Code == reasons.BackingOff, 0
	x.History.FailedAt(p, now)
	p.NotUntil = now.Add(x.Options.Backoff(p.Failed.Attempts()))
	if p.Erred { // a cycle for a plan would end the same way
		p.Asks.RetryAt = model.Latest(p.Asks.RetryAt, p.NotUntil)
	}
}

// ToAllocated: a pod becomes assumed or bound. It was admitted, and its admitted charge
// becomes the allocation, or it was pending and out of the order.
func (x *States) ToAllocated(p *model.Pod, to state.State, node string) {
	if p.State.HasSlot() {
		x.leaveSlot(p)
	}
	x.Pending.Keys.Remove(p.UID)
	x.Pending.Classes.Leave(&p.EquivalenceClass, p.State)
	x.LeaveDemand(p)
	x.Disarm(p)
	x.Enter(p, to)
	p.Node = node
	x.Charge(p, p.Request, p.In()&^(cache.Pending|cache.Admitted)|cache.Allocated)
	x.SettleOn(p, node, p.Amount())
	x.History.NotePod(output.Allocated, p)
	x.Weigh(p)
	if p.Asks.Holds() {
		x.Preemption.Holds.TimesChange()
	}
	x.History.Counts.Allocated++
	if to == state.Bound {
		x.History.Begin(p.App)
	}
	x.Count(p.App)
}

// LeaveAllocated takes back the charge of an assumed or bound pod. Preemptors no longer
// wait for it to leave its node.
func (x *States) LeaveAllocated(p *model.Pod) {
	x.History.NotePod(output.Released, p)
	x.Chosen(p, "")
	x.WeighAs(p, 0)
	x.SettleOn(p, "", resources.Vector{})
	x.Charge(p, p.Amount(), 0)
	x.History.Counts.Released++
	x.Count(p.App)
	x.Pending.Release(x.Cache.Tree(), p.App.Leaf)
}

// requeue: Unschedulable to Queued, or to BackingOff while its back-off lasts. No pod is admitted
// before all pods of the same event are back; see [Store.Returning].
func (x *States) Requeue(p *model.Pod, now time.Time) {
	if p.Asks.Holds() { // holds bypass the order
		x.Cool(p, model.Latest(p.NotUntil, now))
		return
	}
	x.Pending.NoteReturn(now)
	if !p.NotUntil.After(now) {
		x.ToWaiting(p)
		return
	}
	x.Cool(p, p.NotUntil)
	if !p.Erred {
		x.EnterLane(p)
	}
}

func (x *States) Refused(p *model.Pod) {
	switch p.State {
	case state.Admitted, state.Scheduling:
		x.Vacate(p)
		x.ToWaiting(p)
	case state.BackingOff:
		x.LeaveCooling(p)
		x.ToWaiting(p)
	case state.Unschedulable, state.GroupBlocked:
		x.ToWaiting(p)
	}
	x.Pending.Keys.Remove(p.UID)
}

// Lose notes that a pod no longer uses a node as before.
func (x *States) Lose(l pending.LostPod) {
	if x.Started {
		x.Pending.Lost.Add(l)
	}
}

// Expire ends the lease of a slot without a result of the pod's cycle. The pod is treated
// as failed, so that others can go on, and comes back after its back-off.
func (x *States) Expire(p *model.Pod, now time.Time) {
	x.Vacate(p)
	x.ToParked(p, reasons.New(reasons.BackingOff, "the pod was let through and not heard of for %v", x.Options.Lease(p)), now)
	x.Cool(p, now.Add(x.Options.MaxBackoff))
}

// Cool makes an unschedulable pod back off until a time.
func (x *States) Cool(p *model.Pod, until time.Time) {
	x.Enter(p, state.BackingOff)
	x.Pending.Timers.Set(&p.Timer, until)
}

// planAnew allows plans for the members of a PodGroup again, regardless of earlier
// losses: it has started, or its minMember changed.
func (x *States) planAnew(g *model.PodGroup) {
	if g.Data.Losses.Count == 0 {
		return
	}
	g.Data.Losses = preemption.Losses{}
	for _, m := range g.InState(state.GroupBlocked, state.Unschedulable, state.BackingOff) {
		m.Asks.RetryAt = time.Time{}
		x.Arm(m, time.Time{})
	}
}

// The lane is the order of backing-off pods that found no node and may be helped by an
// event since. While other pods can be admitted, back-off keeps these pods from being
// tried at every such event. When no other pod can be, it would leave freed room unused,
// or give it to the pod whose back-off ends first. So the first pod of the lane is admitted
// then, and the next one after that cycle. The scheduler's queue does the same.

// EnterLane puts a backing-off pod into the lane, or an unschedulable one into the order of
// its own; see ahead.go.
func (x *States) EnterLane(p *model.Pod) {
	p.LaneAsk = x.Pending.LaneOf(p.State).Push(x.Cache.Tree(), p.App, p.App.Info(x.Cache.Tree()), p.AskKey(), p.Request, p.ApartKind())
}

// LeaveLane takes a pod out of its lane, if it is in one. Its state is still the same.
func (x *States) LeaveLane(p *model.Pod) {
	if p.LaneAsk != nil {
		x.Pending.LaneOf(p.State).Remove(p.LaneAsk)
		p.LaneAsk = nil
	}
}

// FirstOfLane moves the first pod of the lane into the order if no pod is admitted. The
// order has no other pod that can go on at that time.
func (x *States) FirstOfLane() bool {
	if x.Pending.Window.Taken() > 0 {
		return false
	}
	ask, ok := x.Pending.Lane.Next()
	if !ok {
		return false
	}
	p := x.Pods[types.UID(ask.UID())]
	x.LeaveCooling(p)
	x.ToWaiting(p)
	return true
}

// LeaveCooling takes a pod that failed out of the deadlines and out of its lane.
func (x *States) LeaveCooling(p *model.Pod) {
	x.Pending.Timers.Clear(&p.Timer)
	x.LeaveLane(p)
}

// RenewPod takes over the content of an event. It updates the application if the event
// changes whether the pod lives, or its owners or originator setting.
func (x *States) RenewPod(p *model.Pod, event *objects.Pod) {
	same := p.App == nil || p.Deleting == event.Deleting && p.Originator == event.Originator &&
		p.Created.Equal(event.Created) && slices.Equal(p.Owners, event.Owners)
	if !same {
		x.Live(p, false)
	}
	x.TakeOver(p, event)
	x.History.Changed(p)
	x.JoinMates(p)
	if !same {
		x.Live(p, !p.Deleting)
	}
}

// Withdraw takes a pending pod out of the order, the window and the deadlines. The caller
// sets its next state.
func (x *States) Withdraw(p *model.Pod) {
	switch p.State {
	case state.Queued:
		x.LeaveOrder(p)
	case state.Admitted, state.Scheduling:
		x.Vacate(p)
	case state.BackingOff, state.Unschedulable:
		x.LeaveCooling(p)
	}
}

// RenewForeign takes over the content of an event and the owners of the pod.
func (x *States) RenewForeign(p *model.Pod, event *objects.Pod) {
	x.History.Changed(p)
	same := p.Deleting == event.Deleting && slices.Equal(p.Owners, event.Owners)
	if !same {
		x.CountForeign(p, -1)
	}
	x.TakeOver(p, event)
	if !same {
		x.CountForeign(p, 1)
	}
}

// Rest makes a pod come back at a time if it is Unschedulable, or BackingOff with a later deadline.
func (x *States) Rest(p *model.Pod, until time.Time) {
	switch {
	case p.State == state.Unschedulable:
		x.Cool(p, until)
	case p.State == state.BackingOff && until.Before(p.Timer.When()):
		x.Pending.Timers.Set(&p.Timer, until)
	}
}

// Park takes a preemptor with a hold out of its cycle.
func (x *States) Park(p *model.Pod) {
	if p.State == state.Unschedulable {
		return
	}
	x.Withdraw(p)
	x.Pending.Keys.Remove(p.UID)
	x.Enter(p, state.Unschedulable)
}
