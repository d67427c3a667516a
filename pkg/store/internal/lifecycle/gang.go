package lifecycle

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// Only the first pod of a gang carries its style: a Spark driver has the style, and its
// executors have only the name of their group. So that a Hard gang never runs in part,
// all pods of its groups wait together with the pod that asks for Hard, regardless of the
// order in which they arrive.

// updateGang updates the gang of a pod. It is called before the pod is placed, for every
// event that may change what the pod asks for.
func (x *Lifecycle) updateGang(p *model.Pod, now time.Time) {
	name, hard := x.asksForHard(p)
	if p.Gang != nil && !(hard && p.Gang.Name == name && p.Gang.HardPods[p.UID] != nil) {
		x.leaveGang(p, now)
	}
	if !hard {
		return
	}
	g := x.m.Gangs[name]
	if g == nil {
		g = &model.HardGang{Name: name, HardPods: map[types.UID]*model.Pod{}, BlockedPods: map[types.UID]*model.Pod{}}
		x.m.Gangs[name] = g
	}
	g.HardPods[p.UID], p.Gang = p, g
	if len(g.HardPods) == 1 {
		x.keepBackEarlier(name, now)
	}
}

// keepBackEarlier keeps back the pending members that arrived before the first pod that asks for
// Hard.
func (x *Lifecycle) keepBackEarlier(name cache.AppName, now time.Time) {
	var members []*model.Pod
	for _, a := range x.m.Apps.Named(name) {
		for living := range a.Living() {
			if m := x.m.Pods[living.UID]; !m.State.HasNode() {
				if id, _ := x.m.Identify(m.Pod); id.Gang == placement.GangSoft {
					members = append(members, m)
				}
			}
		}
	}
	slices.SortFunc(members, model.CompareAge)
	for _, m := range members {
		x.holds.EndHold(m, reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "a pod of its application asks for a Hard gang"), now)
		x.Unplace(m, now)
		x.Place(m, now)
	}
}

// leaveGang takes a pod out of its Hard gang. When the last pod that asked for Hard
// leaves, the gang ends and its members become ordinary pods.
func (x *Lifecycle) leaveGang(p *model.Pod, now time.Time) {
	g := p.Gang
	if g == nil {
		return
	}
	p.Gang = nil
	delete(g.HardPods, p.UID)
	delete(g.BlockedPods, p.UID)
	if len(g.HardPods) > 0 {
		return
	}
	delete(x.m.Gangs, g.Name)
	members := slices.SortedFunc(maps.Values(g.BlockedPods), model.CompareAge)
	for _, m := range members {
		m.Gang = nil
	}
	for _, m := range members {
		if x.m.Started {
			x.Place(m, now)
		}
	}
}

// KeptBackBy returns the Hard gang that keeps back a member of a gang without a node, and the
// reason; nil and none for any other pod.
func (x *Lifecycle) KeptBackBy(p *model.Pod, id placement.Identity) (*model.HardGang, reasons.Reason) {
	g := x.m.Gangs[cache.AppName{Namespace: p.Namespace, ID: id.Application}]
	if g == nil || id.Shared || id.Gang != placement.GangSoft || p.Node != "" {
		return nil, reasons.Reason{}
	}
	return g, reasons.New(reasons.HardGangUnsupported,
		"application %s has a pod that asks for gangSchedulingStyle=Hard, which is not offered, so no pod of its task groups is started",
		id.Application)
}

// asksForHard tells whether a pod keeps back others of its application. A running pod
// does not: its gang began under another scheduler, and waiting would not complete it.
func (x *Lifecycle) asksForHard(p *model.Pod) (cache.AppName, bool) {
	if p.Node != "" || p.Annotations[placement.KeyPolicyParameters] == "" {
		return cache.AppName{}, false
	}
	id, _ := x.m.Identify(p.Pod)
	// Pods share such an application by default: no user grouped them.
	return cache.AppName{Namespace: p.Namespace, ID: id.Application}, id.Gang == placement.GangHard && !id.Shared
}
