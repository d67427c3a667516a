package model

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// ApplyEvent takes over an event of a known pod. Budgets may count a pod with another health differently,
// so the next plan sees its node again.
func (x *Model) ApplyEvent(p *Pod, event *objects.Pod) {
	if p.Health != event.Health && p.On() != nil {
		x.Preemption.Snapshot.MarkStale(p.On().Name())
	}
	x.ChangeGuarded(p, func() { p.SetEvent(event) })
}

// ChangeGuarded runs a change of a known pod and updates the sums of budgets.
func (x *Model) ChangeGuarded(p *Pod, change func()) {
	before := p.Guarded()
	change()
	x.Cache.Protection.PodChanged(before, p.Guarded())
}

// SetChosenBy makes a pod a victim of an asker, or of none if asker is empty, and charges it so.
func (x *Model) SetChosenBy(p *Pod, asker types.UID) {
	if p.ChosenBy == asker {
		return
	}
	a := x.Pods[asker]
	x.ChangeGuarded(p, func() { p.ChosenBy, p.ChosenByOwn = asker, a != nil && a.RequiredNode != "" && p.IsOfItsOwn(a) })
	x.Recharge(p)
}

// SetLives updates whether a pod of an application lives: it is known and not being deleted.
func (x *Model) SetLives(p *Pod, lives bool) {
	x.Cache.Originators.SetLives(&p.CachePod, lives)
	x.routeOriginators()
}

// CountForeign adds n to the number of living pods of each owner of a foreign pod, unless
// the pod is being deleted.
func (x *Model) CountForeign(p *Pod, n int) {
	if p.Deleting {
		return
	}
	for _, owner := range p.Owners {
		x.Cache.Originators.Owns(owner, n)
	}
	x.routeOriginators()
}

// routeOriginators notes that pods changed for plans and readers, because their originator
// status may have changed.
func (x *Model) routeOriginators() {
	for _, p := range x.Cache.Originators.Take() {
		x.TouchPod(x.Pods[p.UID])
	}
}

// DropWaitingState releases the state that a running pod does not need, and starts the timer of a
// deleted one, which ends when the pod no longer counts as leaving.
func (x *Model) DropWaitingState(p *Pod, now time.Time) {
	if p.Report != nil && x.History.Reports.Placed(p.Report, now) {
		p.Report = nil
	}
	if p.Asker != nil && !p.Asker.EverHeld() {
		p.Asker = nil
	}
	until, leaves := p.LeavesUntil(&x.Preemption.Options)
	switch {
	case leaves && !until.After(now):
		x.NoteOverdue(p) // before the first plan of a process that has just started
	case leaves:
		if p.WaitState == x.NoWaitState {
			p.WaitState = NewWaitState(p, p.UID)
		}
		x.Pending.Timers.Set(&p.Timer, until)
	}
	if !p.Timer.IsSet() {
		p.WaitState = x.NoWaitState
	}
}

// NoteOverdue notes that a deleted pod is there still after the time for which it counts as
// leaving, kept by a finalizer or by a node that does not answer. It counts as used until
// it is gone.
func (x *Model) NoteOverdue(p *Pod) {
	p.Overdue = true
	x.Recharge(p)
	x.TouchPod(p)
}

// CountsAsLeaving tells whether plans count on the room of a pod.
func (x *Model) CountsAsLeaving(p *Pod) bool {
	return p.Leaves() && !p.lingers(x.Preemption.LongestLeaving())
}

// GuardedPods yields all pods as budgets see them.
func (x *Model) GuardedPods() iter.Seq[cache.Guarded] {
	return func(yield func(cache.Guarded) bool) {
		for _, p := range x.Pods {
			if !yield(p.Guarded()) {
				return
			}
		}
	}
}

// DisruptionsLeft is what the budgets still allow, for [planner.Snapshot]. Victims of plans
// in force count as gone if inForce is true.
func (x *Model) DisruptionsLeft(inForce bool) []int64 {
	return x.Cache.Protection.Left(x.GuardedPods(), inForce)
}
