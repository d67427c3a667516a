package store

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// The members of a PodGroup start together, or none starts. Plugin Coscheduling ensures
// that: each member waits, with its node and its quota, until minMember of them have a
// place; if one finds none, or after a time-out, all places are taken back. During that
// time other pods cannot use the places, so the store lets a group try only when it can
// succeed:
//
//	             too few of them can go on, the quota has no room for
//	             the rest of them, or another group is being placed
//	  waiting ─────────────────────────────────────────────────────────► parked, kept
//	     │   ▲                                                               │
//	     │   └───────────────────────────────────────────────────────────────┘
//	     │                    none of these reasons is left
//	     └──► admitted, together with all missing members
//
// A member that found no node is parked like any pod and does not count as able to go on.
// When the scheduler's hints bring it back, its group can go on, too. A member that holds
// a node counts as placed, so the plan for the next member is made at once, while the
// victims of the first one are still leaving. One group is placed at a time: two groups
// that each take half of the nodes would block each other for ever. Other groups wait for
// it as long as for a pod without a result of its cycle (the slot lease). How long it
// keeps its places without progress is set by its own PodGroup.
//
// Once minMember members have a place, further members are ordinary pods.

// PodGroupLabel is the label with the name of the pod's PodGroup, in the pod's namespace.
const PodGroupLabel = "scheduling.x-k8s.io/pod-group"

// groupName identifies a PodGroup.
type groupName struct{ namespace, name string }

func (n groupName) String() string { return n.namespace + "/" + n.name }

func (n groupName) compare(o groupName) int {
	return cmp.Or(cmp.Compare(n.namespace, o.namespace), cmp.Compare(n.name, o.name))
}

// podGroup is a PodGroup, or a group that pods name and that does not exist.
type podGroup struct {
	name    groupName
	min     int // minMember; 0 while there is no such PodGroup
	members map[types.UID]*pod
	in      [state.Count]int  // members by state
	holding int               // parked or cooling members that hold a node
	refusal queues.Verdict    // of the quota without room for the rest; else granted
	inLine  bool              // it waits until another group is placed
	shares  []share           // requests of the missing members; nil if not computed
	losses  preemption.Losses // losses until it has started
}

// together is the state of all PodGroups.
type together struct {
	follows bool // otherwise PodGroupLabel has no effect
	groups  map[groupName]*podGroup
	// placing is the group that is being placed: its members were admitted, and it is not
	// complete. Others wait for its result, at most until the time until.
	placing *podGroup
	until   time.Time
	// touched are the groups to check because something changed. Of the groups with kept
	// members, refused are those that a queue has no room for, and line those that wait
	// for another group.
	touched map[*podGroup]struct{}
	refused map[queues.ID]map[*podGroup]struct{}
	line    map[*podGroup]struct{}
}

func newTogether() together {
	return together{
		groups: map[groupName]*podGroup{}, touched: map[*podGroup]struct{}{},
		refused: map[queues.ID]map[*podGroup]struct{}{}, line: map[*podGroup]struct{}{},
	}
}

// placed counts the members that have a node.
func (g *podGroup) placed() int { return g.in[state.Assumed] + g.in[state.Bound] }

// admitted counts the members that have a slot.
func (g *podGroup) admitted() int { return g.in[state.Admitted] + g.in[state.Scheduling] }

// blocked counts the members that are out of the order only because of the group.
func (g *podGroup) blocked() int { return g.in[state.GroupBlocked] }

// missing is how many members must still be admitted to complete the group.
func (g *podGroup) missing() int { return g.min - g.coming() }

// coming counts the members that have a node, hold one, or are admitted.
func (g *podGroup) coming() int { return g.placed() + g.admitted() + g.holding }

// complete tells whether the group has started, so that members no longer wait for each
// other.
func (g *podGroup) complete() bool { return g.min > 0 && g.placed() >= g.min }

// able tells whether enough members have a place or can go on.
func (g *podGroup) able() bool { return g.min > 0 && g.missing() <= g.in[state.Queued]+g.blocked() }

// led tells whether kept members need no check of the group: an event will bring them
// into the order, or none are kept.
func (g *podGroup) led() bool {
	return g.blocked() == 0 || g.in[state.Queued] > 0 || !g.refusal.OK() || g.inLine || !g.able()
}

// apart tells whether a pod may start only together with its group.
func (p *pod) apart() bool { return p.mates != nil && !p.mates.complete() }

// mateOf tells whether two pods are of the same group.
func (p *pod) mateOf(o *pod) bool { return o != nil && p.mates != nil && p.mates == o.mates }

// lacksMates tells whether other members must be admitted together with a pod.
func (p *pod) lacksMates() bool { return p.apart() && (p.mates.min == 0 || p.mates.missing() > 0) }

// FollowPodGroups turns PodGroups on; otherwise their label has no effect. Call it before
// Start.
func (s *Store) FollowPodGroups() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.together.follows = true
	for _, p := range s.pods {
		s.joinMates(p)
	}
}

// UpsertPodGroup sets how many pods of a PodGroup start together.
func (s *Store) UpsertPodGroup(namespace, name string, minMember int, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.setPodGroup(groupName{namespace, name}, max(minMember, 1))
}

// DeletePodGroup handles the deletion of a PodGroup. Its waiting members keep waiting.
func (s *Store) DeletePodGroup(namespace, name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.setPodGroup(groupName{namespace, name}, 0)
}

// Gathered tells whether minMember members of a pod's PodGroup have a place. It is false
// for a pod that is not known or has no PodGroup.
func (s *Store) Gathered(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[uid]
	return p != nil && p.mates != nil && p.mates.complete()
}

func (s *Store) setPodGroup(name groupName, minMember int) {
	g := s.podGroup(name)
	if g.min != minMember {
		s.planAnew(g)
	}
	g.min, g.shares = minMember, nil
	s.preemption.Holds.TimesChange()
	s.together.touched[g] = struct{}{}
	s.dropPodGroup(g)
}

func (s *Store) podGroup(name groupName) *podGroup {
	g := s.together.groups[name]
	if g == nil {
		g = &podGroup{name: name, members: map[types.UID]*pod{}, refusal: queues.Granted}
		s.together.groups[name] = g
	}
	return g
}

// dropPodGroup forgets a group without object and members.
func (s *Store) dropPodGroup(g *podGroup) {
	if g.min > 0 || len(g.members) > 0 {
		return
	}
	s.reopen(g)
	delete(s.together.touched, g)
	delete(s.together.groups, g.name)
	if s.together.placing == g {
		s.together.placing = nil
	}
}

// joinMates updates the group that a pod names.
func (s *Store) joinMates(p *pod) {
	name := groupName{p.Namespace, p.Labels[PodGroupLabel]}
	if p.mates != nil && p.mates.name == name {
		return
	}
	s.leaveMates(p)
	if !s.together.follows || p.Foreign || name.name == "" {
		return
	}
	g := s.podGroup(name)
	s.recountMate(g, p, func() {
		p.mates = g
		g.members[p.UID] = p
	})
}

// leaveMates takes a pod out of its group.
func (s *Store) leaveMates(p *pod) {
	g := p.mates
	if g == nil {
		return
	}
	s.recountMate(g, p, func() {
		p.mates = nil
		delete(g.members, p.UID)
	})
	s.dropPodGroup(g)
}

// count adds a member to the counts of its group, or subtracts it.
func (g *podGroup) count(p *pod, by int) {
	if p.mates != g {
		return
	}
	g.in[p.state] += by
	if p.awaitsHeldNode() {
		g.holding += by
	}
}

// awaitsHeldNode tells whether a pod holds a node and is not admitted for it yet.
func (p *pod) awaitsHeldNode() bool {
	return p.asks.Holds() && !p.state.HasSlot() && !p.state.HasNode()
}

// setHolds sets whether a pod holds a node.
func (s *Store) setHolds(p *pod, holds bool) {
	s.recountMate(p.mates, p, func() { p.asks.SetHolds(holds) })
}

// recountMate runs a change of a member of a group, and marks the group if the change may
// let members go on, or end their chance to. The group may be nil.
func (s *Store) recountMate(g *podGroup, p *pod, change func()) {
	if g == nil {
		change()
		return
	}
	able, complete, led := g.able(), g.complete(), g.led()
	if p.asks.Holds() {
		s.preemption.Holds.TimesChange()
	}
	g.count(p, -1)
	change()
	g.count(p, 1)
	g.shares = nil
	if g.complete() {
		s.planAnew(g)
	}
	if complete != g.complete() {
		s.preemption.Holds.TimesChange()
	}
	if able != g.able() || complete != g.complete() || led && !g.led() {
		s.together.touched[g] = struct{}{}
	}
}

// why is the reason that the kept members of a group wait.
func (g *podGroup) why() reasons.Reason {
	switch {
	case g.min == 0:
		return reasons.New(reasons.PodGroupIncomplete, "the pod names PodGroup %s in label %s, and there is none", g.name, PodGroupLabel)
	case !g.able():
		return reasons.New(reasons.PodGroupIncomplete,
			"PodGroup %s starts when %d of its pods can: %d run, have a place or hold a node, %d can go on, %d found no node or are about to be tried again, %d have no queue",
			g.name, g.min, g.coming(), g.in[state.Queued]+g.blocked(), g.in[state.Unschedulable]+g.in[state.BackingOff]-g.holding, g.in[state.NoQueue])
	case !g.refusal.OK():
		return g.refusal.Reason
	case g.inLine:
		return reasons.New(reasons.InOrder, "PodGroup %s: another PodGroup is being started, and it is one at a time", g.name)
	}
	return reasons.New(reasons.InOrder, "PodGroup %s is about to be tried", g.name)
}

// whyForgotten is why a pod that had a node is not bound there. A member of a PodGroup
// gives its place back when another member finds none. No pod is bound on a node that is
// held for another pod by that time.
func (s *Store) whyForgotten(p *pod, node string) reasons.Reason {
	if p.apart() {
		if m := p.mates.withoutPlace(p); m != nil {
			return reasons.New(reasons.PodGroupIncomplete, "PodGroup %s: the pod gave back its place on node %s, because pod %s found no node: %s",
				p.mates.name, node, m.Name, m.reason.Text)
		}
	}
	if pass := s.preemption.Holds.MayUseInGroup(node, p.UID, p.group(), p.RequiredNode == node); !pass.OK && pass.Holder.Asker != p.UID {
		return reasons.New(reasons.NodeHeld, "node %s was held for pod %s/%s while the pod was placed there", node, pass.Holder.Namespace, pass.Holder.Name)
	}
	return reasons.New(reasons.BackingOff, "a step after the choice of a node failed")
}

// GroupOf returns the PodGroup that a pod names by its labels, as holds have it; empty for
// none.
func GroupOf(namespace string, labels map[string]string) string {
	if name := labels[PodGroupLabel]; name != "" {
		return groupName{namespace, name}.String()
	}
	return ""
}

// group is the name of the pod's PodGroup in holds; empty for none.
func (p *pod) group() string {
	if p.mates == nil {
		return ""
	}
	return p.mates.name.String()
}

// withoutPlace returns the first member, by name, that found no node; nil for none.
func (g *podGroup) withoutPlace(but *pod) *pod {
	var first *pod
	for _, m := range g.members {
		found := !m.state.WaitsForNode() || m.asks.Holds() || m.reason.Code == reasons.BackingOff || m.reason.Code == reasons.PodGroupIncomplete
		if m != but && !found && (first == nil || m.Name < first.Name) {
			first = m
		}
	}
	return first
}

// code is the code of why, without its text.
func (g *podGroup) code() reasons.Code {
	switch {
	case !g.able():
		return reasons.PodGroupIncomplete
	case !g.refusal.OK():
		return g.refusal.Reason.Code
	}
	return reasons.InOrder
}
