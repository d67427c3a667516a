package store

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// The members of a PodGroup start together, or none does. Plugin Coscheduling sees
// to that: it lets each member wait, with its node and its quota, until minMember of
// them have a place, and takes all places back when one finds none, or after a
// time. The store sees to it that this is tried when it can succeed only, for all
// that time others go without the places:
//
//	             not enough of them can go on, the quota has no room
//	             for the rest of them, or another group is being placed
//	  waiting ─────────────────────────────────────────────────────────► parked, kept
//	     │   ▲                                                               │
//	     │   └───────────────────────────────────────────────────────────────┘
//	     │                    none of this is so any more
//	     └──► admitted, with as many others as are missing
//
// A member that no node took is parked as any pod is, and does not count among those
// that can go on. So the scheduler's hints, which bring it back, bring its group back.
// A member that holds a node counts as one that has a place: the plan for the next
// member is made at once, while the victims of the first one are still leaving.
// One group is placed at a time: two that take half of the nodes each would never end.
// Others wait for it as long as they would for a pod that is not heard of: how long it
// keeps its places, while nothing happens, is for whoever made it to say.
//
// Once minMember of them have a place, members are pods like all others.

// PodGroupLabel is the label that names the PodGroup of a pod, in its namespace.
const PodGroupLabel = "scheduling.x-k8s.io/pod-group"

// groupName names a PodGroup.
type groupName struct{ namespace, name string }

func (n groupName) String() string { return n.namespace + "/" + n.name }

func (n groupName) compare(o groupName) int {
	return cmp.Or(cmp.Compare(n.namespace, o.namespace), cmp.Compare(n.name, o.name))
}

// podGroup is a PodGroup, or what pods say is one.
type podGroup struct {
	name    groupName
	min     int // how many start together; 0 while there is no such PodGroup
	members map[types.UID]*pod
	in      [bound + 1]int // the members, by state
	kept    int            // of those parked: they could go on without the others
	holding int            // of those parked or cooling: they hold a node
	refusal queues.Verdict // of the quota that has no room for the rest; else granted
	inLine  bool           // it waits until another one is placed
	shares  []share        // what the members request that are missing; nil if not known
	losses  losses         // until it has started
}

// together is what the store knows of PodGroups.
type together struct {
	follows bool // otherwise the label means nothing
	groups  map[groupName]*podGroup
	// placing is the group whose members were let through and that is not complete.
	// Others wait for what becomes of it, but not beyond until.
	placing *podGroup
	until   time.Time
	// touched are the groups for which something changed. Of those with members that
	// are kept: refused are those that a queue has no room for, line those that wait
	// for their turn.
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
func (g *podGroup) placed() int { return g.in[assumed] + g.in[bound] }

// missing is how many members have to be let through for the group to be complete.
func (g *podGroup) missing() int { return g.min - g.coming() }

// coming counts the members that have a node, hold one, or were let through.
func (g *podGroup) coming() int { return g.placed() + g.in[admitted] + g.holding }

// complete tells whether members need not care for each other any more.
func (g *podGroup) complete() bool { return g.min > 0 && g.placed() >= g.min }

// able tells whether enough members have a place or can go on.
func (g *podGroup) able() bool { return g.min > 0 && g.missing() <= g.in[waiting]+g.kept }

// led tells whether somebody brings those into the order who are kept, or is going to.
func (g *podGroup) led() bool {
	return g.kept == 0 || g.in[waiting] > 0 || !g.refusal.OK() || g.inLine || !g.able()
}

// apart tells whether a pod does not start before others of its group.
func (p *pod) apart() bool { return p.mates != nil && !p.mates.complete() }

// mateOf tells whether two pods are of one group.
func (p *pod) mateOf(o *pod) bool { return o != nil && p.mates != nil && p.mates == o.mates }

// lacksMates tells whether others have to be let through with a pod.
func (p *pod) lacksMates() bool { return p.apart() && (p.mates.min == 0 || p.mates.missing() > 0) }

// FollowPodGroups gives the label of PodGroups its meaning. It is called before
// Start, if at all.
func (s *Store) FollowPodGroups() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.together.follows = true
	for _, p := range s.pods {
		s.joinMates(p)
	}
}

// UpsertPodGroup tells how many pods of a PodGroup start together.
func (s *Store) UpsertPodGroup(namespace, name string, minMember int, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.setPodGroup(groupName{namespace, name}, max(minMember, 1))
}

// DeletePodGroup tells that a PodGroup is gone. Its members that wait go on waiting.
func (s *Store) DeletePodGroup(namespace, name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.setPodGroup(groupName{namespace, name}, 0)
}

// Gathered tells whether as many members of a pod's PodGroup have a place as are to
// start together. It is false for a pod that is not known, or has no PodGroup.
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
	g.min, g.shares, s.dueAnew = minMember, nil, true
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

// dropPodGroup forgets a group of which nothing is left.
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

// joinMates follows what a pod says of its group.
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
		p.mates, p.kept = nil, false
		delete(g.members, p.UID)
	})
	s.dropPodGroup(g)
}

// count adds a member to the counts of its group, or takes it out.
func (g *podGroup) count(p *pod, by int) {
	if p.mates != g {
		return
	}
	g.in[p.state] += by
	if p.kept {
		g.kept += by
	}
	if p.awaitsHeldNode() {
		g.holding += by
	}
}

// awaitsHeldNode tells whether a pod holds a node and was not let through for it yet.
func (p *pod) awaitsHeldNode() bool {
	return p.asks.holds && p.state != admitted && !p.state.allocated()
}

// setHolds notes that a pod holds a node, or does no more.
func (s *Store) setHolds(p *pod, holds bool) {
	s.recountMate(p.mates, p, func() { p.asks.holds = holds })
}

// recountMate changes a member of a group, and notes if that lets members go on, or makes
// it pointless. The group may be nil.
func (s *Store) recountMate(g *podGroup, p *pod, change func()) {
	if g == nil {
		change()
		return
	}
	able, complete, led := g.able(), g.complete(), g.led()
	s.dueAnew = s.dueAnew || p.asks.holds
	g.count(p, -1)
	change()
	g.count(p, 1)
	g.shares = nil
	if g.complete() {
		s.planAnew(g)
	}
	s.dueAnew = s.dueAnew || complete != g.complete()
	if able != g.able() || complete != g.complete() || led && !g.led() {
		s.together.touched[g] = struct{}{}
	}
}

// why says what the members of a group wait for that are kept.
func (g *podGroup) why() reasons.Reason {
	switch {
	case g.min == 0:
		return reasons.New(reasons.PodGroupIncomplete, "the pod names PodGroup %s in label %s, and there is none", g.name, PodGroupLabel)
	case !g.able():
		return reasons.New(reasons.PodGroupIncomplete,
			"PodGroup %s starts when %d of its pods can: %d run, have a place or hold a node, %d can go on, %d found no node or are about to be tried again, %d have no queue",
			g.name, g.min, g.coming(), g.in[waiting]+g.kept, g.in[parked]+g.in[cooling]-g.kept-g.holding, g.in[unplaced])
	case !g.refusal.OK():
		return g.refusal.Reason
	case g.inLine:
		return reasons.New(reasons.InOrder, "PodGroup %s: another PodGroup is being started, and it is one at a time", g.name)
	}
	return reasons.New(reasons.InOrder, "PodGroup %s is about to be tried", g.name)
}

// whyForgotten says why a pod that had a node is not bound there. A member of a PodGroup
// gives its place back when another one finds none, and no pod is bound on a node that is
// held for others by then.
func (s *Store) whyForgotten(p *pod, node string) reasons.Reason {
	if p.apart() {
		if m := p.mates.withoutPlace(p); m != nil {
			return reasons.New(reasons.PodGroupIncomplete, "PodGroup %s: the pod gave back its place on node %s, because pod %s found no node: %s",
				p.mates.name, node, m.Name, m.reason.Text)
		}
	}
	if pass := s.holds.MayUse(node, p.UID, p.RequiredNode == node); !pass.OK && pass.Holder.Asker != p.UID {
		return reasons.New(reasons.NodeHeld, "node %s was held for pod %s/%s while the pod was placed there", node, pass.Holder.Namespace, pass.Holder.Name)
	}
	return reasons.New(reasons.BackingOff, "a step after the choice of a node failed")
}

// withoutPlace is the first member, by name, that found no node; nil for none.
func (g *podGroup) withoutPlace(but *pod) *pod {
	var first *pod
	for _, m := range g.members {
		found := m.state != parked && m.state != cooling || m.kept || m.asks.holds || m.reason.Code == reasons.BackingOff || m.reason.Code == reasons.PodGroupIncomplete
		if m != but && !found && (first == nil || m.Name < first.Name) {
			first = m
		}
	}
	return first
}

// code is the code of why, without the sentence.
func (g *podGroup) code() reasons.Code {
	switch {
	case !g.able():
		return reasons.PodGroupIncomplete
	case !g.refusal.OK():
		return g.refusal.Reason.Code
	}
	return reasons.InOrder
}
