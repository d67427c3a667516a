package simulation_test

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The laws are judged for all missing pods of a PodGroup where these pods are known from
// outside: the PodGroup always had the same minMember, and it has exactly as many other
// members as it lacks.

// minMember is the minMember that the PodGroup of a pod has had since its creation; 0 if
// it had several, or does not exist.
func (s *simulation) minMember(uid types.UID) int {
	if !s.settings.groups {
		return 0
	}
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	for _, p := range s.api.allPods() {
		if p.UID == uid {
			return s.onlyMinMember(groupOf(p))
		}
	}
	return 0
}

// onlyMinMember is the same for a PodGroup. The caller holds the lock.
func (s *simulation) onlyMinMember(name types.NamespacedName) int {
	only := 0
	for _, h := range s.api.groups.events {
		g, there := h.new.(*v1alpha1.PodGroup)
		switch {
		case !there && nameOf(h.old) == name:
			return 0
		case there && nameOf(g) == name && only != 0 && only != int(g.Spec.MinMember):
			return 0
		case there && nameOf(g) == name:
			only = int(g.Spec.MinMember)
		}
	}
	return only
}

// leastMinMember is the smallest minMember that the PodGroup of a pod has had: the process may not
// know a later one yet. It is 0 if the PodGroup never existed.
func (s *simulation) leastMinMember(uid types.UID) (least int) {
	if !s.settings.groups {
		return 0
	}
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	for _, p := range s.api.allPods() {
		for _, h := range s.api.groups.events {
			if g, there := h.new.(*v1alpha1.PodGroup); there && p.UID == uid && nameOf(g) == groupOf(p) {
				least = min(cmp.Or(least, int(g.Spec.MinMember)), int(g.Spec.MinMember))
			}
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
