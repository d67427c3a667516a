package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// DelayEnd is when the preemption delay of the pod's leaf ends (P1).
func (p *Pod) DelayEnd(tree *queues.Draft) time.Time {
	return p.Created.Add(tree.Queue(p.App.Leaf).Policies.PreemptionDelay)
}

// Sweeping returns the sweep of a pod, shared by its equivalence class.
func (p *Pod) Sweeping() *preemption.Sweep {
	if p.EquivalenceClass != nil {
		return (*preemption.Sweep)(&p.EquivalenceClass.Sweep)
	}
	return &p.Asks.Sweep
}

// WatchedPath returns the queues on a pod's path, below root.
func (p *Pod) WatchedPath(tree *queues.Draft) []preemption.Watched {
	var out []preemption.Watched
	for q := range tree.Ancestors(p.App.Leaf) {
		if !q.IsRoot() {
			out = append(out, preemption.WatchedQueue(q.ID))
		}
	}
	return out
}

// Stuck tells whether a pod waits for room that others use: no node took it, or the max
// of a queue above its leaf is used up.
func (p *Pod) Stuck() bool {
	switch p.State {
	case state.GroupBlocked, state.Unschedulable, state.BackingOff:
		return true
	case state.Queued:
		if p.HeldByClass() {
			return true
		}
		v := p.Ask.Group().Verdict()
		return v.Reason.Code == reasons.OverMax && v.At != p.App.Leaf
	}
	return false
}

// MayAsk tells whether law 4 can be met for a pod.
func (x *Model) MayAsk(p *Pod) bool {
	return x.Cache.Books.BelowGuarantee(p.App.Leaf, p.Request, x.Preemption.StrictGuarantee)
}

// LastRefused returns when and why a plan for the pod, or for another pod of its
// equivalence class, failed.
func (p *Pod) LastRefused() (at time.Time, why reasons.Reason) {
	at, why = p.Asks.TriedAt, p.Asks.Refused
	if t := p.EquivalenceClass; t != nil && t.TriedAt.After(at) {
		at, why = t.TriedAt, t.Refused
	}
	return at, why
}

// Wait is the time left until a given time, rounded for messages.
func Wait(until, now time.Time) time.Duration {
	d := until.Sub(now)
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// PlanFrom returns when the next plan for a pod may be made after a loss, and the reason
// given to users until then.
func (p *Pod) PlanFrom() (time.Time, reasons.Reason) {
	l := &p.Asks.Losses
	if p.Apart() && p.Mates.Data.Losses.Until.After(l.Until) {
		l = &p.Mates.Data.Losses
	}
	return l.Until, l.Why
}

// Newcomers names the pods that came to a node or queue after a hold began, by arrival,
// with their scheduler if they are foreign; empty if none are known, as after a restart.
func Newcomers(pods []*Pod, began uint32) string {
	pods = slices.DeleteFunc(pods, func(p *Pod) bool { return p.CameAfter(began) <= 0 })
	slices.SortFunc(pods, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(a.CameAfter(began), b.CameAfter(began)), cmp.Compare(a.UID, b.UID))
	})
	var names []string
	for _, p := range pods {
		name := p.Namespace + "/" + p.Name
		if p.Scheduler != "" {
			name += " of " + p.Scheduler
		}
		names = append(names, name)
	}
	return preemption.Listed(names)
}

// Lingers tells whether a deleted pod that is no victim of a plan in force may stay
// longer than a hold lasts. No plan counts on its room.
func (p *Pod) Lingers(holdTimeout time.Duration) bool {
	return p.Deleting && p.ChosenBy == "" && p.DeletionGrace > holdTimeout
}

// OfItsOwn tells whether a leaving pod has the queue, the application or the controller
// of a preemptor, or, if both are of no queue, its namespace. The preemptor's own user
// then causes the pod to leave.
func (p *Pod) OfItsOwn(asker *Pod) bool {
	switch {
	case p.Controller != "" && p.Controller == asker.Controller:
		return true
	case p.App == nil || asker.App == nil:
		return p.App == asker.App && p.Namespace == asker.Namespace
	}
	return p.App.Leaf == asker.App.Leaf || p.App.Name == asker.App.Name
}

// Foreign pods belong to no queue. The store tracks them for their usage of nodes. Some
// foreign pods may be preemptors: pending pods that can run on one node only, of profiles
// of this process (plans.NodeBound).

// MayAskForeign tells whether a foreign pod may be a preemptor.
func MayAskForeign(p *objects.Pod) bool {
	return p.Peer && p.RequiredNode != "" && p.Node == "" && !p.Deleting && !p.Gated
}
