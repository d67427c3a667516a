package lifecycle

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/plans"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Lifecycle takes up what informers tell. Make one with New.
type Lifecycle struct {
	m      *model.Model
	demand *admission.Demand
	states *admission.States
	holds  *holds.Holds
	plans  *plans.Plans
}

// New returns the lifecycle of the objects of a model.
func New(m *model.Model, demand *admission.Demand, states *admission.States, held *holds.Holds, p *plans.Plans) *Lifecycle {
	return &Lifecycle{m, demand, states, held, p}
}

// Upsert handles an event of a pod.
func (x *Lifecycle) Upsert(event objects.Pod, now time.Time) {
	event.Normalize()
	x.m.Cache.Types.Split(&event)
	x.m.Freed(x.m.Preemption.Ledger.Claimed(&event))
	x.m.Freed(x.m.Preemption.NodeBound.Update(&event, now))
	x.Apply(&event, now)
}

// LeavingTimeEnded handles the end of the time for which a deleted pod counts as leaving. A victim
// of a plan in force still counts; see [model.Model.CountsAsLeaving].
func (x *Lifecycle) LeavingTimeEnded(p *model.Pod, now time.Time) {
	x.m.NoteOverdue(p)
	x.m.DropWaitingState(p, now)
	if !x.m.CountsAsLeaving(p) {
		x.holds.Stays(p, now)
	}
}

// Apply handles an event of a pod with a normalized request: by kind of the pod, whether
// it is known, and whether it has a node.
func (x *Lifecycle) Apply(event *objects.Pod, now time.Time) {
	p, known := x.m.Pods[event.UID]
	if event.Foreign {
		x.upsertForeign(p, event, now)
		return
	}
	switch {
	case event.Terminal, event.Deleting && event.Node == "" && !(known && p.State == state.Assumed):
		// It uses nothing and will use nothing.
		if known {
			x.drop(p, now)
		}
	case !known:
		x.add(event, now)
	case event.Node != "":
		x.confirm(p, event, now)
	case p.State.HasNode():
		// The bind is not seen yet. This event takes effect if the bind fails.
		x.m.ChangeGuarded(p, func() { p.Deleting = event.Deleting })
		if p.State == state.Assumed {
			p.LateEvent = event
		}
		x.m.History.Changed(p)
		x.m.SetLives(p, !p.Deleting)
		x.m.Recharge(p)
	default:
		x.change(p, event, now)
	}
}

// Delete handles the deletion of a pod.
func (x *Lifecycle) Delete(uid types.UID, now time.Time) {
	x.m.Freed(x.m.Preemption.Ledger.Claimed(&objects.Pod{Identity: objects.Identity{UID: uid}}))
	x.m.Freed(x.m.Preemption.NodeBound.Remove(uid, now))
	if p, known := x.m.Pods[uid]; known {
		x.drop(p, now)
	}
}

// add adds an unknown pod.
func (x *Lifecycle) add(event *objects.Pod, now time.Time) {
	p := model.NewPod(event, x.m.NoWaitState)
	x.m.Pods[p.UID] = p
	x.m.Cache.Protection.PodChanged(cache.Guarded{}, p.Guarded())
	x.m.Unplaced[p.UID] = p
	x.m.History.Tally(p)
	x.m.History.Changed(p)
	x.holds.Inherit(p, now)
	if p.Node == "" || p.Told != "" {
		p.Report = x.m.History.Reports.Expect(p.UID, p.Told, now)
	}
	x.states.JoinGroup(p)
	x.updateGang(p, now)
	if x.m.Started {
		x.Place(p, now)
		x.plans.RestoreHold(p, now)
	}
}

// drop removes a pod in any state.
func (x *Lifecycle) drop(p *model.Pod, now time.Time) {
	x.holds.SuspectRefusal(p, now)
	node := p.On()
	if p.Asker.HoldsNode() {
		x.holds.EndHold(p, reservations.Deleted, reasons.New(reasons.HoldGivenUp, "pod %s/%s is gone", p.Namespace, p.Name), now)
	}
	switch {
	case !p.State.HasNode():
		x.states.Withdraw(p, state.NoQueue)
	case !p.Foreign:
		x.states.LeaveAllocated(p)
	}
	x.states.Disarm(p)
	x.m.Pending.Timers.Clear(&p.Timer)
	x.m.Pending.Classes.Leave(&p.EquivalenceClass, p.State)
	x.demand.Leave(p)
	switch {
	case p.Foreign:
		x.m.CountForeign(p, -1)
	case p.State != state.NoQueue:
		if !p.State.HasNode() {
			x.m.Charge(p, p.Amount(), 0)
		}
		x.m.LeaveForGood(p, now)
	}
	x.m.Pending.Keys.Remove(p.UID)
	x.m.Cache.Protection.PodChanged(p.Guarded(), cache.Guarded{})
	x.m.Preemption.Undeletable.Forget(p.UID)
	delete(x.m.Pods, p.UID)
	delete(x.m.Unplaced, p.UID)
	x.m.History.Waits.Update(&p.Tallied, history.Tally{})
	x.m.History.Reports.Forget(p.Report)
	if p.Foreign && node != nil {
		x.m.History.NoteForeign(output.ForeignWent, p)
	}
	x.m.PlaceOn(p, "", resources.Vector{})
	x.m.History.Pods.Remove(p, p.UID)
	x.states.LeaveGroup(p)
	x.leaveGang(p, now)
	x.holds.Gone(p.UID, p.Node, now)
}

// confirm handles an event with the pod on a node.
func (x *Lifecycle) confirm(p *model.Pod, event *objects.Pod, now time.Time) {
	if p.State.HasNode() {
		if p.State == state.Assumed {
			x.checkAsAssumed(p, event, now)
		}
		if p.State == state.Assumed || looksDifferent(p.Pod, event) {
			x.m.TouchPod(p)
		}
		x.states.Enter(p, state.Bound)
		p.LateEvent = nil
		x.m.History.Begin(p.App, now)
		x.resize(p, event, now)
		x.holds.EndHold(p, reservations.Bound, reasons.Reason{}, now)
		x.readClaim(p, now)
		x.m.DropWaitingState(p, now)
		return
	}
	// Another scheduler bound it, or the store has just started: quotas do not apply.
	if p.State == state.NoQueue {
		x.m.ApplyEvent(p, event)
		x.m.History.Changed(p)
		x.states.JoinGroup(p)
		x.updateGang(p, now)
		if x.m.Started {
			x.Place(p, now)
		}
		return
	}
	x.applyToPod(p, event)
	x.states.ToAllocated(p, state.Bound, event.Node, now)
	x.holds.EndHold(p, reservations.Bound, reasons.Reason{}, now)
	x.holds.WakeHolders(event.Node, "", now)
	x.readClaim(p, now)
	x.m.DropWaitingState(p, now)
}

// resize applies any change of what an allocated pod uses.
func (x *Lifecycle) resize(p *model.Pod, event *objects.Pod, now time.Time) {
	before, elsewhere := p.On().Name(), !p.IsOn(event.Node)
	if elsewhere {
		x.m.History.NotePod(output.Released, p)
	}
	x.applyToPod(p, event)
	more := event.Request.Sub(p.Amount())
	if !more.IsZero() {
		x.m.Charge(p, event.Request, p.In())
	}
	switch {
	case elsewhere:
		x.m.History.NotePod(output.Allocated, p)
	case !more.IsZero():
		x.m.History.AddFact(output.Event{Kind: output.Resized, App: p.App.EventName, Amount: more})
	}
	if elsewhere || !more.IsZero() {
		x.m.PlaceOn(p, event.Node, p.Amount())
		x.holds.WakeHolders(event.Node, "", now)
		if elsewhere {
			x.holds.WakeHolders(before, "", now)
		}
	}
	x.m.Recharge(p)
}

// checkAsAssumed checks whether an assumed pod runs as it was assumed.
func (x *Lifecycle) checkAsAssumed(p *model.Pod, event *objects.Pod, now time.Time) {
	had := p.AssumedUse()
	p.LargerRequest = nil
	if p.Node != event.Node || !event.Request.Covers(had) {
		x.states.NoteFreedUnseen(pending.FreedPod{UID: p.UID, Node: p.Node, Request: had.Add(p.Uncounted), When: now})
	}
}

// applyToPod takes over the content of an event. It updates the application if the event
// changes whether the pod lives, or its owners or originator setting.
func (x *Lifecycle) applyToPod(p *model.Pod, event *objects.Pod) {
	same := p.App == nil || p.Deleting == event.Deleting && p.Originator == event.Originator &&
		p.Created.Equal(event.Created) && slices.Equal(p.Owners, event.Owners)
	if !same {
		x.m.SetLives(p, false)
	}
	x.m.ApplyEvent(p, event)
	x.m.History.Changed(p)
	x.states.JoinGroup(p)
	if !same {
		x.m.SetLives(p, !p.Deleting)
	}
}

// change handles an event of a pending pod.
func (x *Lifecycle) change(p *model.Pod, event *objects.Pod, now time.Time) {
	p.EnsureAsker() // before Start a late event may take the node from a pod
	if p.Report == nil {
		p.Report = x.m.History.Reports.Expect(p.UID, p.Told, now)
	}
	sameSpec := p.Request.Equal(event.Request) && p.Uncounted.Equal(event.Uncounted) &&
		p.Priority == event.Priority && p.Gated == event.Gated && p.RequiredNode == event.RequiredNode
	sameMeta := maps.Equal(p.Labels, event.Labels) && maps.Equal(p.Annotations, event.Annotations)
	if sameSpec && (sameMeta || p.Asker.HoldsNode() && x.staysPut(p, event)) {
		x.applyToPod(p, event)
		x.readClaim(p, now)
		x.demand.Read(p)
		return
	}
	x.holds.EndHold(p, reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod was changed"), now)
	if p.LargerRequest == nil && !event.Request.Covers(p.Request) {
		before := p.Request
		p.LargerRequest = &before
	}
	if p.State != state.NoQueue {
		x.Unplace(p, now)
	}
	x.m.ApplyEvent(p, event)
	x.m.History.Changed(p)
	p.Reason = reasons.Reason{}
	p.Asker.Impossible = false
	x.m.History.Tally(p)
	x.states.JoinGroup(p)
	x.updateGang(p, now)
	if x.m.Started {
		x.Place(p, now)
	}
}

// Unplace takes a pending pod out of its application.
func (x *Lifecycle) Unplace(p *model.Pod, now time.Time) {
	x.holds.EndHold(p, reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod is to have another queue"), now)
	x.states.Withdraw(p, state.NoQueue)
	x.states.Disarm(p)
	x.m.Charge(p, p.Amount(), 0)
	x.m.Pending.Classes.Leave(&p.EquivalenceClass, p.State)
	x.demand.Leave(p)
	x.m.Leave(p, now)
	x.m.History.Changed(p)
	x.states.SetState(p, state.NoQueue)
	x.m.Unplaced[p.UID] = p
}

// DeleteLastSeenPending handles the deletion of a pod that was last seen without a node.
// It may have been bound meanwhile, so pods that wait for room are brought back.
func (x *Lifecycle) DeleteLastSeenPending(uid types.UID, now time.Time) {
	p, known := x.m.Pods[uid]
	room, freed := pending.FreedPod{UID: uid, When: now}, !known || p.Foreign
	if known && p.On() != nil {
		room.Node, room.Request, freed = p.On().Name(), p.AssumedUse().Add(p.Uncounted), true
	}
	x.Delete(uid, now)
	if freed {
		x.states.NoteFreedUnseen(room)
	}
}

// readClaim updates the hold of a pod by the claim that is written on it. A standby follows the
// leader's holds. The leader gets its own claims back as events and restores only those it does not
// know, which are from an earlier process.
func (x *Lifecycle) readClaim(p *model.Pod, now time.Time) {
	switch {
	case !x.m.Started:
		return
	case !x.m.Standby:
		if p.Claim != nil && !p.Asker.IsEcho(p.Claim.Since) {
			x.plans.RestoreHold(p, now)
		}
		return
	}
	if h, ok := x.m.Preemption.Ledger.Of(p.UID); ok && !x.plans.IsAsClaimed(p, &h) {
		x.holds.EndHold(p, reservations.Superseded, reasons.Reason{}, now)
	}
	x.plans.RestoreHold(p, now)
}

// staysPut tells whether a pod has the same application, queue and PodGroup after a change.
// The hold of such a pod is kept, because pods were deleted for it.
func (x *Lifecycle) staysPut(p *model.Pod, event *objects.Pod) bool {
	before, _ := x.m.Identify(p.Pod)
	after, _ := x.m.Identify(event)
	return reflect.DeepEqual(before, after) && x.m.GroupNameOf(p.Pod) == x.m.GroupNameOf(event)
}

// looksDifferent tells whether an event changes a running pod for plans. Changes of its
// usage, and whether it leaves, are handled elsewhere.
func looksDifferent(before, after *objects.Pod) bool {
	return before.Spec != after.Spec || before.DeletionGrace != after.DeletionGrace ||
		!before.Created.Equal(after.Created) || !maps.Equal(before.Labels, after.Labels)
}
