package pending

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// PodGroupName identifies a PodGroup.
type PodGroupName struct{ Namespace, Name string }

func (n PodGroupName) String() string { return n.Namespace + "/" + n.Name }

func (n PodGroupName) compare(o PodGroupName) int {
	return cmp.Or(cmp.Compare(n.Namespace, o.Namespace), cmp.Compare(n.Name, o.Name))
}

// PodGroup is a PodGroup of the API, or one that pods name and that does not exist: its
// members, and how many of them can go on. PodGroups makes and changes it.
type PodGroup[P comparable, D any] struct {
	// Data is what the store keeps with the group.
	Data D

	name    PodGroupName
	min     int // minMember; 0 while there is no such PodGroup
	order   func(a, b P) int
	members map[types.UID]*member[P]
	in      [state.Count]int // members by state
	holding int              // members that hold a node and are not admitted for it
	refusal queues.Verdict   // of the quota without room for the missing members; else granted
	waits   bool             // it waits until another group is placed
}

// member is a pod of a group.
type member[P any] struct {
	pod   P
	in    state.State
	holds bool // it holds a node
}

// awaitsHeldNode tells whether the member holds a node and is not admitted for it yet.
func (m *member[P]) awaitsHeldNode() bool { return m.holds && !m.in.HasSlot() && !m.in.HasNode() }

// Name is the name of the PodGroup.
func (g *PodGroup[P, D]) Name() PodGroupName { return g.name }

// Min is minMember; 0 while there is no such PodGroup.
func (g *PodGroup[P, D]) Min() int { return g.min }

// In counts the members in a state.
func (g *PodGroup[P, D]) In(s state.State) int { return g.in[s] }

// Placed counts the members that have a node.
func (g *PodGroup[P, D]) Placed() int { return g.in[state.Assumed] + g.in[state.Bound] }

// Admitted counts the members that have a slot.
func (g *PodGroup[P, D]) Admitted() int { return g.in[state.Admitted] + g.in[state.Scheduling] }

// Blocked counts the members that are out of the order only because of the group.
func (g *PodGroup[P, D]) Blocked() int { return g.in[state.GroupBlocked] }

// Missing is how many members must still be admitted to complete the group.
func (g *PodGroup[P, D]) Missing() int { return g.min - g.coming() }

// coming counts the members that have a node, hold one, or are admitted.
func (g *PodGroup[P, D]) coming() int { return g.Placed() + g.Admitted() + g.holding }

// Complete tells whether the group has started, so that members no longer wait for each
// other.
func (g *PodGroup[P, D]) Complete() bool { return g.min > 0 && g.Placed() >= g.min }

// OthersFirst tells whether more than one member still needs a node, so that one that holds
// a node leaves free room there to the others.
func (g *PodGroup[P, D]) OthersFirst() bool { return g.Placed()+1 < g.min }

// LacksMembers tells whether other members must be admitted together with one.
func (g *PodGroup[P, D]) LacksMembers() bool { return !g.Complete() && (g.min == 0 || g.Missing() > 0) }

// Able tells whether enough members have a place or can go on.
func (g *PodGroup[P, D]) Able() bool { return g.min > 0 && g.Missing() <= g.canGoOn() }

// canGoOn counts the members that can go on.
func (g *PodGroup[P, D]) canGoOn() int { return g.in[state.Queued] + g.Blocked() }

// stuck tells whether members are blocked and no event will bring them into the order, so
// the group must be checked.
func (g *PodGroup[P, D]) stuck() bool {
	return g.Blocked() > 0 && g.in[state.Queued] == 0 && g.refusal.OK() && !g.waits && g.Able()
}

// Refusal is the verdict of the quota that has no room for the missing members; else granted.
func (g *PodGroup[P, D]) Refusal() queues.Verdict { return g.refusal }

// Select returns the members for which the function holds, in the order of members.
func (g *PodGroup[P, D]) Select(which func(P) bool) []P {
	return g.selected(func(m *member[P]) bool { return which(m.pod) })
}

func (g *PodGroup[P, D]) selected(which func(*member[P]) bool) []P {
	var out []P
	for _, m := range g.members {
		if which(m) {
			out = append(out, m.pod)
		}
	}
	slices.SortFunc(out, g.order)
	return out
}

// Members returns all members in their order.
func (g *PodGroup[P, D]) Members() []P { return g.Select(func(P) bool { return true }) }

// InState returns the members in one of the states, in the order of members.
func (g *PodGroup[P, D]) InState(states ...state.State) []P {
	return g.selected(func(m *member[P]) bool { return slices.Contains(states, m.in) })
}

// Next returns as many members as are missing, in the order of members.
func (g *PodGroup[P, D]) Next() []P {
	ready := g.InState(state.Queued, state.GroupBlocked)
	return ready[:min(len(ready), g.Missing())]
}

// isPlacing tells whether the result of a group is expected soon. It is not while a member
// waits for victims on the node it holds, nor if a member is gone.
func (g *PodGroup[P, D]) isPlacing() bool {
	if g.min == 0 || g.Complete() || len(g.members) < g.min {
		return false
	}
	if g.Admitted() > 0 {
		return true
	}
	for _, m := range g.members {
		if m.holds {
			return false
		}
	}
	return g.in[state.Assumed] > 0
}

// Why is the reason that the blocked members of a group wait.
func (g *PodGroup[P, D]) Why() reasons.Reason {
	switch {
	case g.min == 0:
		return reasons.New(reasons.PodGroupIncomplete, "the pod names PodGroup %s in label %s, and there is none", g.name, objects.PodGroupLabel)
	case !g.Able():
		return reasons.New(reasons.PodGroupIncomplete,
			"PodGroup %s starts when %d of its pods can: %d run, have a place or hold a node, %d can go on, %d found no node or are about to be tried again, %d have no queue",
			g.name, g.min, g.coming(), g.canGoOn(), g.in[state.Unschedulable]+g.in[state.BackingOff]-g.holding, g.in[state.NoQueue])
	case !g.refusal.OK():
		return g.refusal.Reason
	case g.waits:
		return reasons.New(reasons.InOrder, "PodGroup %s: another PodGroup is being started, and it is one at a time", g.name)
	}
	return reasons.New(reasons.InOrder, "PodGroup %s is about to be tried", g.name)
}

// Knows tells whether a pod is a member in this state.
func (g *PodGroup[P, D]) Knows(uid types.UID, pod P, in state.State, holds bool) bool {
	m := g.members[uid]
	return m != nil && *m == member[P]{pod, in, holds}
}

// Len is the number of members.
func (g *PodGroup[P, D]) Len() int { return len(g.members) }

// check verifies the counts, and, once due checks are made, that blocked members have an
// event that will let them go on.
func (g *PodGroup[P, D]) check(due bool) error {
	var in [state.Count]int
	holding, admitted := 0, 0
	for _, m := range g.members {
		in[m.in]++
		if m.awaitsHeldNode() {
			holding++
		}
		if m.in.HasSlot() && !m.holds {
			admitted++
		}
	}
	switch {
	case in != g.in || holding != g.holding:
		return fmt.Errorf("counts %v and %d holding; there are %v and %d", g.in, g.holding, in, holding)
	case due:
		return nil
	case g.stuck():
		return errors.New("it can start, and nothing brings its pods back")
	case !g.Able() && admitted > 0:
		return fmt.Errorf("it cannot start, and %d pods are let through", admitted)
	}
	return nil
}
