package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// PlaceAll tries to place every pod that has no queue: running pods first, because they
// use resources whether they fit or not, then by age.
func (x *Lifecycle) PlaceAll(now time.Time) {
	all := slices.SortedFunc(maps.Values(x.m.Unplaced), func(a, b *model.Pod) int {
		return cmp.Or(-cmp.Compare(min(len(a.Node), 1), min(len(b.Node), 1)), model.CompareAge(a, b))
	})
	for _, p := range all {
		x.Place(p, now)
	}
	if len(x.m.Unplaced) == 0 {
		x.m.Unplaced = map[types.UID]*model.Pod{} // maps do not shrink, and at Start it had all pods
	}
}

// Place gives an unplaced pod its application and queue, or the reason why it has none.
func (x *Lifecycle) Place(p *model.Pod, now time.Time) {
	defer x.m.History.Tally(p)
	defer x.demand.Read(p)
	if p.Gated && p.Node == "" {
		p.Reason = reasons.Brief(reasons.SchedulingGated) // it is placed when its gates are removed
		return
	}
	if why := cache.Chargeable(p.Pod); !why.None() && p.Node == "" {
		x.refuse(p, why)
		return
	}
	id, why := x.m.Identify(p.Pod)
	if g, kept := x.KeptBackBy(p, id); g != nil && why.None() {
		g.BlockedPods[p.UID], p.Gang, why = p, g, kept
	}
	var a *model.App
	if why.None() || p.Node != "" {
		a, why = x.appFor(p, id, now)
	}
	if a == nil {
		x.refuse(p, why)
		return
	}
	delete(x.m.Unplaced, p.UID)
	x.m.Join(a, p)
	if p.Node != "" {
		x.states.ToAllocated(p, state.Bound, p.Node, now)
		x.holds.WakeHolders(p.Node, "", now)
		x.m.DropWaitingState(p, now)
		return
	}
	p.Reason, p.Failed = reasons.Reason{}, nil
	x.states.ToQueued(p)
	x.states.Arm(p, now)
	switch {
	case id.Gang == placement.GangSoft:
		x.m.History.Warn(p, reasons.SoftGangIgnored, now)
	case p.Labels[objects.PodGroupLabel] != "" && !x.m.Pending.PodGroups.Followed:
		x.m.History.Warn(p, reasons.PodGroupIgnored, now)
	}
}

// appFor returns the application of a pod with an identity: one that the pod may join, or a new
// one in the queue that the placement rules name, which is created if it is missing.
func (x *Lifecycle) appFor(p *model.Pod, id placement.Identity, now time.Time) (*model.App, reasons.Reason) {
	running := p.Node != ""
	name := model.AppName(p, id)
	if a := x.m.Apps.Joinable(x.m.Cache.Tree(), name, running); a != nil {
		return a, reasons.Reason{}
	}
	result, reason := x.m.Rules(p, id)
	if !reason.None() {
		return nil, reason
	}
	if reason := x.m.Options.DynamicQueues.Admit(x.m.Cache.Tree(), result.Path, p.Namespace); !reason.None() {
		if !running {
			return nil, reason
		}
		result.Path = queues.RecoveryPath // a user that makes pods may give them a node
	}
	before := x.m.Cache.Tree().TreeGeneration()
	leaf := x.m.Cache.Tree().AddDynamic(result.Path, p.Namespace)
	x.m.IndexPath(leaf)
	if x.m.Cache.Tree().TreeGeneration() != before {
		x.quotasChanged(x.m.Cache.Tree().ApplyQuotasTo(leaf, x.m.Cache.Namespaces.Quota))
	}
	if a := x.m.Apps.Rejoin(leaf, name); a != nil {
		return a, reasons.Reason{}
	}
	return x.m.NewApp(name, leaf, id.User.Name, id.User.Groups, p.Created, now), reasons.Reason{}
}

// refuse sets the reason why a pod has no queue.
func (x *Lifecycle) refuse(p *model.Pod, why reasons.Reason) {
	if x.m.History.Wants(output.Facts) && why.Code != p.Reason.Code {
		wanted, _ := x.m.Identify(p.Pod)
		name := &output.AppName{Namespace: p.Namespace, ID: wanted.Application, User: wanted.User.Name}
		x.m.History.AddFact(output.Event{Kind: output.AppRefused, Pod: p.UID, App: name, Amount: p.Request, Text: why.Text})
	}
	p.Reason = why
}

// countTypes makes types count from now on, for all pods.
func (x *Lifecycle) countTypes(names []string, now time.Time) {
	if !x.m.Cache.Types.Add(names) {
		return
	}
	var again []*model.Pod
	for _, p := range x.m.Pods {
		if !x.m.Cache.Types.IsSplit(p.Pod) {
			again = append(again, p)
		}
	}
	slices.SortFunc(again, model.CompareUID)
	for _, p := range again {
		x.splitAgain(p, now)
	}
}

// splitAgain charges a pod for types that have begun to count, as if an event had added
// them to its request.
func (x *Lifecycle) splitAgain(p *model.Pod, now time.Time) {
	if late := p.LateEvent; late != nil {
		event := *late
		x.m.Cache.Types.Split(&event)
		p.LateEvent = &event
	}
	event := *p.Pod
	x.m.Cache.Types.Split(&event)
	if p.Foreign || !p.State.HasNode() {
		x.Apply(&event, now)
		return
	}
	said := event
	event.Node, event.Deleting = p.Node, p.Deleting
	x.resize(p, &event, now)
	p.Pod = &said // an event never has the assumed node
}

// quotasChanged notes that leaves have another quota.
func (x *Lifecycle) quotasChanged(leaves []queues.ID) {
	for _, leaf := range leaves {
		x.m.Pending.Demand.Changed()
		x.m.IndexPath(leaf)
		x.settingsChanged(leaf)
	}
}
