package simulation_test

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The laws are judged for all missing pods of a PodGroup where these pods are known from
// outside: the PodGroup always had the same minMember, and it has exactly as many other
// members as it lacks.

// minMembers are the minMembers that the PodGroup of a pod has had since its creation, and 0 for each
// time when it was deleted; none if it or the pod does not exist.
func (s *simulation) minMembers(uid types.UID) []int {
	if !s.settings.groups {
		return nil
	}
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	if pod := s.api.podOf(uid); pod != nil {
		return s.minMembersSince(groupOf(pod), 0)
	}
	return nil
}

// minMembersSince are the same of a PodGroup from a version on. The caller holds the lock.
func (s *simulation) minMembersSince(name types.NamespacedName, since int64) (had []int) {
	for _, h := range s.api.groups.events {
		g, there := h.new.(*v1alpha1.PodGroup)
		switch of := cmp.Or[object](h.new, h.old); {
		case nameOf(of) != name:
			continue
		case h.rv <= since:
			had = nil
		}
		if !there {
			had = append(had, 0)
		} else {
			had = append(had, int(g.Spec.MinMember))
		}
	}
	return had
}

// onlyMember is the minMember if there was no other; otherwise 0.
func onlyMember(had []int) int {
	if had = slices.Compact(had); len(had) == 1 {
		return had[0]
	}
	return 0
}

// leastMember is the smallest minMember: a process may not know a later one yet. It is 0 if the PodGroup
// never existed.
func leastMember(had []int) (least int) {
	for _, n := range had {
		if n > 0 {
			least = min(cmp.Or(least, n), n)
		}
	}
	return least
}

// group returns the pods that have to start together with an asker; nil if they are not
// known. The snapshot already has its nodes.
func (p *portrait) group(ask *objects.Pod, minMember int, snapshot *planner.Snapshot) *planner.Group {
	name := ask.Labels[objects.PodGroupLabel]
	if name == "" || minMember == 0 {
		return nil
	}
	g := &planner.Group{Name: ask.Namespace + "/" + name}
	lack := minMember - 1
	for uid, m := range p.pods {
		if uid == ask.UID || m.Foreign || m.Namespace != ask.Namespace || m.Labels[objects.PodGroupLabel] != name {
			continue
		}
		_, waits := p.pendingPod(uid)
		if holds := slices.ContainsFunc(p.holds, func(h reservations.Hold) bool { return h.Asker == uid }); !waits || holds {
			lack--
			continue
		}
		leaf, ok := p.leafOf(&m)
		if !ok || m.Gated || m.Deleting {
			return nil
		}
		request := amounts(m.Request)
		g.Members = append(g.Members, string(uid))
		g.Shares = append(g.Shares, planner.Share{Leaf: leaf, Request: request, Least: request})
	}
	if len(g.Members) == 0 || len(g.Members) != lack {
		return nil
	}
	var free resources.Vector
	for _, n := range snapshot.Nodes {
		if !p.cordoned[n.Name] {
			free = free.Add(p.freeFor(n.Name, ask.UID).Floor0())
		}
	}
	g.Free = amounts(free)
	return g
}

// freeFor returns the free room of a node for an asker beside the holds of all others.
func (p *portrait) freeFor(name string, asker types.UID) resources.Vector {
	free := p.nodes[name]
	for _, m := range p.mirror() {
		if m.Node == name && !p.leaves(&m) {
			free = free.Sub(m.Request)
		}
	}
	for i := range p.holds {
		if h := &p.holds[i]; h.Node == name && h.Asker != asker {
			if _, pending := p.pendingPod(h.Asker); pending {
				free = free.Sub(h.Request)
			}
		}
	}
	return free
}
