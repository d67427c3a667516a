package simulation_test

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The laws are judged for all missing pods of a PodGroup where these pods are known from outside: the
// PodGroup always had the same minMember, and it has exactly as many other members as it lacks.

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

// Originators are preempted only where no other pods of equal harm would do. Of all plans
// without one, only those are tried that free as much of the same node by at most three
// pods that are not protected in any way.

// judgeChoice finds a new plan that takes originators although other pods would do. The caller holds mu.
func (w *interceptor) judgeChoice(h *reservations.Hold) {
	ask, waits := w.pendingPod(h.Asker)
	if h.NodeBound || len(h.Chosen) == 0 || !waits || w.apart(&ask) {
		return
	}
	for _, p := range w.pods {
		if p.RequiredNode == h.Node && p.Node == "" {
			return // another plan may make room that this pod has first (D0)
		}
	}
	var takes resources.Vector
	var others []types.UID
	led := ""
	for _, m := range w.mirror() {
		switch {
		case m.Node != h.Node:
		case slices.Contains(h.Chosen, m.UID):
			takes = takes.Add(m.Request)
			if !m.Deleting && w.mustLead(&m.Pod, true) && w.mustLead(&m.Pod, false) { // one that its owner deleted leads no more
				led = m.Name
			}
		case !m.binding && w.tooLarge[m.UID].IsZero() && w.isHarmless(&m.Pod): // no victim while a refusal of its delete is fresh
			others = append(others, m.UID)
		}
	}
	if led == "" {
		return
	}
	snapshot, d, err := w.snapshot(&ask, h, nil, nil, w.Spec())
	if err != nil {
		return
	}
	w.in.sim.count(originated)
	for _, set := range subsets(others, 3) {
		d.Victims = nil
		var frees resources.Vector
		for _, n := range snapshot.Nodes {
			for _, v := range n.Pods {
				if n.Name == h.Node && slices.Contains(set, types.UID(v.UID)) {
					d.Victims = append(d.Victims, planner.Victim{Pod: v, Node: n.Name})
					frees = frees.Add(w.pods[types.UID(v.UID)].Request)
				}
			}
		}
		if frees.Covers(takes) && judge.Lawful(snapshot, d, planner.Params{StrictGuarantee: w.Preemption().StrictGuarantee}) == nil {
			w.in.sim.fault("%s chooses originator %s for %s on %s, and without it there is a lawful plan: %v", w.in.name, led, ask.Name, h.Node, d)
			return
		}
	}
}

// subsets returns the sets of at most so many of the given pods, without the empty one.
func subsets(of []types.UID, most int) [][]types.UID {
	var out [][]types.UID
	if most == 0 {
		return nil
	}
	for i, uid := range of {
		out = append(out, []types.UID{uid})
		for _, rest := range subsets(of[i+1:], most-1) {
			out = append(out, append(rest, uid))
		}
	}
	return out
}

// mustLead tells whether a pod is an originator of its application. Some pods may be of no
// application, and count if doubtful is true. The caller holds mu.
func (w *interceptor) mustLead(p *objects.Pod, doubtful bool) bool {
	rank, living := w.rank(p), 0
	for _, other := range w.pods {
		none := other.Gated && other.Node == "" || w.Explain(other.UID).Code == reasons.TooManyResourceTypes // it may be of no application
		if other.Foreign || other.Deleting || appOf(&other) != appOf(p) || none && !doubtful {
			continue
		}
		living++
		if r := w.rank(&other); r < rank || r == rank && rank == byAge && other.Created.Unix() < p.Created.Unix() {
			return false
		}
	}
	return rank < byAge || rank == byAge && living > 1
}

// byAge is the rank of the pods of which the oldest are originators.
const byAge = 3

// rank is the rank of a pod among those of its application, by what it says, by its role,
// and by the pods that it owns.
func (w *interceptor) rank(p *objects.Pod) int {
	owns := func() bool {
		for _, other := range w.pods {
			if !other.Foreign && !other.Deleting && appOf(&other) == appOf(p) && slices.Contains(other.Owners, p.UID) {
				return true
			}
		}
		return false
	}
	switch {
	case p.Originator == objects.OriginatorYes:
		return 0
	case p.Originator == objects.OriginatorByRole:
		return 1
	case p.Originator == objects.OriginatorNo:
		return byAge + 1
	case owns():
		return 2
	}
	return byAge
}

// isHarmless tells whether a pod is no originator, has not opted out, and no budget covers
// it. The caller holds mu.
func (w *interceptor) isHarmless(p *objects.Pod) bool {
	if p.Foreign || p.Deleting || p.OptOut == objects.OptOutYes || p.OptOut == objects.OptOutUnsaid && p.Class != "" || w.mustLead(p, true) || w.mustLead(p, false) {
		return false
	}
	for _, b := range w.budgets {
		if b.Namespace == p.Namespace && (b.Matches == nil || b.Matches(p.Labels)) {
			return false
		}
	}
	return true
}
