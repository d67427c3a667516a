package lifecycle

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"k8s.io/apimachinery/pkg/types"
)

// PlaceAll tries to place every pod that has no queue: running pods first, because they
// use resources whether they fit or not, then by age.
func (x *Lifecycle) PlaceAll(now time.Time) {
	all := slices.SortedFunc(maps.Values(x.Unplaced), func(a, b *model.Pod) int {
		return cmp.Or(
			-cmp.Compare(min(len(a.Node), 1), min(len(b.Node), 1)),
			a.Created.Compare(b.Created),
			cmp.Compare(a.UID, b.UID),
		)
	})
	for _, p := range all {
		x.Place(p, now)
	}
	if len(x.Unplaced) == 0 {
		x.Unplaced = map[types.UID]*model.Pod{} // maps do not shrink, and at Start it had all pods
	}
}

// Place gives an unplaced pod its application and queue, or the reason why it has none.
func (x *Lifecycle) Place(p *model.Pod, now time.Time) {
	defer x.History.Tally(p)
	defer x.states.HeardDemand(p)
	if p.Gated && p.Node == "" {
		p.Reason = reasons.Brief(reasons.SchedulingGated) // it is placed when its gates are removed
		return
	}
	if why := cache.Chargeable(p.Pod); !why.None() && p.Node == "" {
		x.Refuse(p, why)
		return
	}
	a, gang, reason := x.AppFor(p)
	if a == nil {
		x.Refuse(p, reason)
		return
	}
	delete(x.Unplaced, p.UID)
	x.Join(a, p)
	if p.Node != "" {
		x.states.ToAllocated(p, state.Bound, p.Node)
		x.AtWork(p, now)
		return
	}
	p.Reason, p.Failed = reasons.Reason{}, nil
	x.states.ToWaiting(p)
	x.states.Arm(p, now)
	switch {
	case gang == placement.GangSoft:
		x.History.Warn(p, reasons.SoftGangIgnored, now)
	case p.Labels[objects.PodGroupLabel] != "" && !x.Pending.Groups.Followed:
		x.History.Warn(p, reasons.PodGroupIgnored, now)
	}
}

// countTypes makes types count from now on, for all pods.
func (x *Lifecycle) countTypes(names iter.Seq[string], now time.Time) {
	for _, uid := range x.Cache.Types.Add(names) {
		x.splitAgain(x.Pods[uid], now)
	}
}

// splitAgain charges a pod for types that have begun to count, as if an event had added
// them to its request.
func (x *Lifecycle) splitAgain(p *model.Pod, now time.Time) {
	if late := p.Late; late != nil {
		event := *late
		x.Cache.Types.Split(&event)
		p.Late = &event
	}
	event := *p.Pod
	x.Cache.Types.Split(&event)
	if p.Foreign || !p.State.HasNode() {
		x.Apply(&event, now)
		return
	}
	said := event
	event.Node, event.Deleting = p.Node, p.Deleting
	x.resize(p, &event, now)
	p.Pod = &said // without the assumed node, which no event has
}
