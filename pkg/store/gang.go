package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// Only the first pod of a gang carries its style: a Spark driver has the style, and its
// executors have only the name of their group. So that a Hard gang never runs in part,
// all pods of its groups wait together with the pod that asks for Hard, regardless of the
// order in which they arrive.

// hardGang is an application in which a pending pod asks for a Hard gang.
type hardGang struct {
	name cache.AppName
	says map[types.UID]*pod // pods that ask for it; never empty
	kept map[types.UID]*pod // members that are kept back because of them
}

// enlist updates the gang of a pod. It is called before the pod is placed, for every
// event that may change what the pod asks for.
func (s *Store) enlist(p *pod, now time.Time) {
	name, hard := s.options.asksForHard(p)
	if p.gang != nil && !(hard && p.gang.name == name && p.gang.says[p.UID] != nil) {
		s.leaveGang(p, now)
	}
	if !hard {
		return
	}
	g := s.gangs[name]
	if g == nil {
		g = &hardGang{name: name, says: map[types.UID]*pod{}, kept: map[types.UID]*pod{}}
		s.gangs[name] = g
	}
	g.says[p.UID], p.gang = p, g
	if len(g.says) == 1 {
		s.takeBack(name, now)
	}
}

// takeBack keeps back the pending members that arrived before the first pod that asks for
// Hard.
func (s *Store) takeBack(name cache.AppName, now time.Time) {
	var members []*pod
	for _, a := range s.apps.Named(name) {
		for living := range a.Living() {
			if m := s.pods[living.UID]; !m.state.HasNode() {
				if id, _ := placement.Identify(placementOf(m.Pod), s.options.Placement); id.Gang == placement.GangSoft {
					members = append(members, m)
				}
			}
		}
	}
	slices.SortFunc(members, elder)
	for _, m := range members {
		s.endHold(m, reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "a pod of its application asks for a Hard gang"), now)
		s.unplace(m, now)
		s.place(m, now)
	}
}

// elder orders pods: creation, then UID.
func elder(a, b *pod) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) }

// asksForHard tells whether a pod keeps back others of its application. A running pod
// does not: its gang began under another scheduler, and waiting would not complete it.
func (o *Options) asksForHard(p *pod) (cache.AppName, bool) {
	if p.Node != "" || p.Annotations[placement.KeyPolicyParameters] == "" {
		return cache.AppName{}, false
	}
	id, _ := placement.Identify(placementOf(p.Pod), o.Placement)
	// Pods share such an application by default: no user grouped them.
	return cache.AppName{Namespace: p.Namespace, ID: id.Application}, id.Gang == placement.GangHard && !id.Shared
}

// keepBack refuses a member of a gang while another pod asks for a Hard gang.
func (s *Store) keepBack(p *pod, id placement.Identity) reasons.Reason {
	g := s.gangs[cache.AppName{Namespace: p.Namespace, ID: id.Application}]
	if g == nil || id.Shared || id.Gang != placement.GangSoft {
		return reasons.Reason{}
	}
	g.kept[p.UID], p.gang = p, g
	return reasons.New(reasons.HardGangUnsupported,
		"application %s has a pod that asks for gangSchedulingStyle=Hard, which is not offered, so no pod of its task groups is started",
		id.Application)
}

// leaveGang takes a pod out of its Hard gang. When the last pod that asked for Hard
// leaves, the gang ends and its members become ordinary pods.
func (s *Store) leaveGang(p *pod, now time.Time) {
	g := p.gang
	if g == nil {
		return
	}
	p.gang = nil
	delete(g.says, p.UID)
	delete(g.kept, p.UID)
	if len(g.says) > 0 {
		return
	}
	delete(s.gangs, g.name)
	members := slices.SortedFunc(maps.Values(g.kept), elder)
	for _, m := range members {
		m.gang = nil
	}
	for _, m := range members {
		if s.started {
			s.place(m, now)
		}
	}
}
