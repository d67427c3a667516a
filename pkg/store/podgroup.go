package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
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
//	  Queued ────────────────────────────────────────────────────────► GroupBlocked
//	     │   ▲                                                               │
//	     │   └───────────────────────────────────────────────────────────────┘
//	     │                    none of these reasons is left
//	     └──► Admitted, together with all missing members
//
// A member that found no node is Unschedulable like any pod and does not count as able to
// go on.
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

// podGroup is a PodGroup, or a group that pods name and that does not exist.
type podGroup = pending.Group[*pod, groupData]

// groupData is what the store keeps with a group.
type groupData struct {
	shares []share           // requests of the missing members; nil if not computed
	losses preemption.Losses // losses until it has started
}

// apart tells whether a pod may start only together with its group.
func (p *pod) apart() bool { return p.mates != nil && !p.mates.Complete() }

// mateOf tells whether two pods are of the same group.
func (p *pod) mateOf(o *pod) bool { return o != nil && p.mates != nil && p.mates == o.mates }

// FollowPodGroups turns PodGroups on; otherwise their label has no effect. Call it before
// Start.
func (s *Store) FollowPodGroups() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.Groups.Followed = true
	for _, p := range s.pods {
		s.joinMates(p)
	}
}

// UpsertPodGroup sets how many pods of a PodGroup start together.
func (s *Store) UpsertPodGroup(namespace, name string, minMember int, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.setPodGroup(pending.GroupName{Namespace: namespace, Name: name}, max(minMember, 1))
}

// DeletePodGroup handles the deletion of a PodGroup. Its waiting members keep waiting.
func (s *Store) DeletePodGroup(namespace, name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.setPodGroup(pending.GroupName{Namespace: namespace, Name: name}, 0)
}

// Gathered tells whether minMember members of a pod's PodGroup have a place. It is false
// for a pod that is not known or has no PodGroup.
func (s *Store) Gathered(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[uid]
	return p != nil && p.mates != nil && p.mates.Complete()
}

func (s *Store) setPodGroup(name pending.GroupName, minMember int) {
	g := s.pending.Groups.Get(name)
	if g.Min() != minMember {
		s.planAnew(g)
	}
	g.Data.shares = nil
	s.preemption.Holds.TimesChange()
	s.pending.Groups.SetMin(g, minMember)
}

// joinMates updates the group that a pod names.
func (s *Store) joinMates(p *pod) {
	name := pending.GroupName{Namespace: p.Namespace, Name: p.Labels[PodGroupLabel]}
	if p.mates != nil && p.mates.Name() == name {
		return
	}
	s.leaveMates(p)
	if !s.pending.Groups.Followed || p.Foreign || name.Name == "" {
		return
	}
	p.mates = s.pending.Groups.Get(name)
	complete := p.mates.Complete()
	s.pending.Groups.Join(p.mates, p.UID, p, p.state, p.asks.Holds())
	s.groupChanged(p.mates, complete, p.asks.Holds())
}

// leaveMates takes a pod out of its group.
func (s *Store) leaveMates(p *pod) {
	g := p.mates
	if g == nil {
		return
	}
	complete := g.Complete()
	s.pending.Groups.Leave(g, p.UID)
	p.mates = nil
	s.groupChanged(g, complete, p.asks.Holds())
}

// setHolds sets whether a pod holds a node.
func (s *Store) setHolds(p *pod, holds bool) {
	p.asks.SetHolds(holds)
	s.updateMate(p, true)
}

// updateMate updates a pod in its group after a change of its state, or of whether it
// holds a node.
func (s *Store) updateMate(p *pod, holds bool) {
	if g := p.mates; g != nil {
		complete := g.Complete()
		s.pending.Groups.Update(g, p.UID, p.state, p.asks.Holds())
		s.groupChanged(g, complete, holds)
	}
}

// groupChanged does what follows from a change of a member. holds is set if that member
// holds a node, or held one: the time-outs of holds then change.
func (s *Store) groupChanged(g *podGroup, wasComplete, holds bool) {
	g.Data.shares = nil
	if g.Complete() {
		s.planAnew(g)
	}
	if holds || wasComplete != g.Complete() {
		s.preemption.Holds.TimesChange()
	}
}

// whyForgotten is why a pod that had a node is not bound there. A member of a PodGroup
// gives its place back when another member finds none. No pod is bound on a node that is
// held for another pod by that time.
func whyForgotten(holds *preemption.Holds, p *pod, node string) reasons.Reason {
	if p.apart() {
		if m := withoutPlace(p.mates, p); m != nil {
			return reasons.New(reasons.PodGroupIncomplete, "PodGroup %s: the pod gave back its place on node %s, because pod %s found no node: %s",
				p.mates.Name(), node, m.Name, m.reason.Text)
		}
	}
	if pass := holds.MayUseInGroup(node, p.UID, p.group(), p.RequiredNode == node); !pass.OK && pass.Holder.Asker != p.UID {
		return reasons.New(reasons.NodeHeld, "node %s was held for pod %s/%s while the pod was placed there", node, pass.Holder.Namespace, pass.Holder.Name)
	}
	return reasons.New(reasons.BackingOff, "a step after the choice of a node failed")
}

// GroupOf returns the PodGroup that a pod names by its labels, as holds have it; empty for
// none.
func GroupOf(namespace string, labels map[string]string) string {
	if name := labels[PodGroupLabel]; name != "" {
		return pending.GroupName{Namespace: namespace, Name: name}.String()
	}
	return ""
}

// group is the name of the pod's PodGroup in holds; empty for none.
func (p *pod) group() string {
	if p.mates == nil {
		return ""
	}
	return p.mates.Name().String()
}

// withoutPlace returns the first member, by name, that found no node; nil for none.
func withoutPlace(g *podGroup, but *pod) *pod {
	var first *pod
	for _, m := range g.InState(state.Unschedulable, state.BackingOff) {
		found := m.asks.Holds() || m.reason.Code == reasons.BackingOff || m.reason.Code == reasons.PodGroupIncomplete
		if m != but && !found && (first == nil || m.Name < first.Name) {
			first = m
		}
	}
	return first
}
