package lifecycle

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// upsertForeign handles an event of a foreign pod.
func (x *Lifecycle) upsertForeign(p *model.Pod, event *objects.Pod, now time.Time) {
	mayAsk, gone := model.MayAskForeign(event), event.Terminal || event.Node == "" && event.Deleting
	if p != nil && event.Node == "" && !mayAsk && !gone {
		x.holds.EndHold(p, reservations.GivenUp, model.NoDaemonSet, now)
	}
	switch {
	case gone || event.Node == "" && !mayAsk && event.Claim == nil:
		if p != nil {
			x.dropForeign(p, gone, now)
		}
		return
	case p == nil:
		p = model.NewPod(event, x.m.NoWaitState)
		p.State = state.Unschedulable
		x.m.Pods[p.UID] = p
		x.m.CountForeign(p, 1)
		x.holds.Inherit(p, now)
		x.m.Cache.Protection.PodChanged(cache.Guarded{}, p.Guarded())
	case !p.Foreign:
		return // a pod does not change its scheduler
	}
	if event.Node == "" {
		x.changeForeign(p, event, now)
		return
	}
	touched := !p.Leaves() && event.Deleting || looksDifferent(p.Pod, event)
	if p.State != state.Bound {
		x.states.EndCycle(p)
		x.states.Disarm(p)
		x.states.Enter(p, state.Bound)
	}
	x.applyToForeign(p, event)
	x.moveForeign(p, event.Node, now)
	x.noteNomination(event, now)
	if touched {
		x.m.TouchPod(p)
	}
	x.holds.EndHold(p, reservations.Bound, reasons.Reason{}, now)
	x.readClaim(p, now)
	if p.RequiredNode != "" {
		x.holds.Supersede(p.On(), now)
	}
	x.m.DropWaitingState(p, now)
}

// noteNomination notes that a pod is bound to another node than it was nominated to.
func (x *Lifecycle) noteNomination(event *objects.Pod, now time.Time) {
	if event.LeftNomination != "" {
		x.states.NoteFreedUnseen(pending.FreedPod{UID: event.UID, Node: event.LeftNomination, Nominated: true, When: now})
	}
}

// dropForeign removes a foreign pod that is gone or may not ask for room any more. If the pod stays
// and is BackingOff, it is let through now: its gate was closed for a hold, and no event would open
// it.
func (x *Lifecycle) dropForeign(p *model.Pod, gone bool, now time.Time) {
	if !gone && p.State == state.BackingOff {
		x.states.LetThrough(p, now)
	}
	x.drop(p, now)
}

// changeForeign handles an event of a foreign pod that may be an asker, or that says that
// it holds a node.
func (x *Lifecycle) changeForeign(p *model.Pod, event *objects.Pod, now time.Time) {
	if p.State == state.Bound {
		return // an old event
	}
	if !p.Request.Equal(event.Request) || p.Priority != event.Priority {
		x.holds.EndHold(p, reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod was changed"), now)
		p.Asker.Impossible = false
		x.states.ReturnBy(p, now)
	}
	x.applyToForeign(p, event)
	x.readClaim(p, now)
	x.states.RetryTooEarly(p, now)
}

// moveForeign puts a foreign pod on its node.
func (x *Lifecycle) moveForeign(p *model.Pod, node string, now time.Time) {
	before, used, came := p.On(), p.Uses(), !p.IsOn(node)
	if came && before != nil {
		x.m.History.NoteForeign(output.ForeignWent, p)
	}
	x.m.PlaceOn(p, node, p.Request)
	if came {
		x.m.History.NoteForeign(output.ForeignCame, p)
	}
	if came && before != nil {
		x.holds.WakeHolders(before.Name(), "", now)
	}
	if came || !p.Request.Equal(used) {
		x.holds.WakeHolders(node, "", now)
	}
}

// applyToForeign takes over the content of an event and the owners of the pod.
func (x *Lifecycle) applyToForeign(p *model.Pod, event *objects.Pod) {
	x.m.History.Changed(p)
	same := p.Deleting == event.Deleting && slices.Equal(p.Owners, event.Owners)
	if !same {
		x.m.CountForeign(p, -1)
	}
	x.m.ApplyEvent(p, event)
	if !same {
		x.m.CountForeign(p, 1)
	}
}
