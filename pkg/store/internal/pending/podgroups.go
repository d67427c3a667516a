package pending

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// PodGroups has all PodGroups, which of them must be checked because something changed, and
// for what the others wait. One group is placed at a time.
type PodGroups[P comparable, D any] struct {
	Followed bool // otherwise pods are members of no group

	order  func(a, b P) int
	byName map[PodGroupName]*PodGroup[P, D]
	// placing is the group that is being placed: its members were admitted, and it is not
	// complete. Others wait for its result, at most until the time until.
	placing *PodGroup[P, D]
	until   time.Time
	// touched are the groups to check. Of the groups with blocked members, refused are those
	// that a queue has no room for, and waiting those that wait for another group.
	touched map[*PodGroup[P, D]]struct{}
	refused map[queues.ID]map[*PodGroup[P, D]]struct{}
	waiting map[*PodGroup[P, D]]struct{}
}

// NewPodGroups returns no groups. order compares members: a strict total order.
func NewPodGroups[P comparable, D any](order func(a, b P) int) *PodGroups[P, D] {
	return &PodGroups[P, D]{
		order:   order,
		byName:  map[PodGroupName]*PodGroup[P, D]{},
		touched: map[*PodGroup[P, D]]struct{}{},
		refused: map[queues.ID]map[*PodGroup[P, D]]struct{}{},
		waiting: map[*PodGroup[P, D]]struct{}{},
	}
}

// Get returns a group. It makes one without members that does not exist.
func (x *PodGroups[P, D]) Get(name PodGroupName) *PodGroup[P, D] {
	g := x.byName[name]
	if g == nil {
		g = &PodGroup[P, D]{name: name, order: x.order, members: map[types.UID]*member[P]{}, refusal: queues.Granted}
		x.byName[name] = g
	}
	return g
}

// All iterates over the groups, in no particular order.
func (x *PodGroups[P, D]) All() iter.Seq[*PodGroup[P, D]] { return maps.Values(x.byName) }

// SetMin sets minMember; 0 if there is no such PodGroup. A group without object and members
// is forgotten.
func (x *PodGroups[P, D]) SetMin(g *PodGroup[P, D], minMember int) {
	g.min = minMember
	x.Touch(g)
	x.drop(g)
}

// Set sets the state of a pod of a group, and whether it holds a node. The pod becomes a
// member if it is none.
func (x *PodGroups[P, D]) Set(g *PodGroup[P, D], uid types.UID, pod P, in state.State, holds bool) {
	x.change(g, func() {
		if m := g.members[uid]; m != nil {
			g.count(m, -1)
		} else {
			x.touchRefused(g)
		}
		g.members[uid] = &member[P]{pod, in, holds}
		g.count(g.members[uid], 1)
	})
}

// Leave takes a member out of its group. A group without object and members is forgotten.
func (x *PodGroups[P, D]) Leave(g *PodGroup[P, D], uid types.UID) {
	x.change(g, func() {
		g.count(g.members[uid], -1)
		delete(g.members, uid)
		x.touchRefused(g)
	})
	x.drop(g)
}

// touchRefused marks a group that a quota refused: other members may be the next ones now.
func (x *PodGroups[P, D]) touchRefused(g *PodGroup[P, D]) {
	if !g.refusal.OK() {
		x.Touch(g)
	}
}

// count adds a member to the counts of its group, or subtracts it.
func (g *PodGroup[P, D]) count(m *member[P], by int) {
	g.in[m.in] += by
	if m.awaitsHeldNode() {
		g.holding += by
	}
}

// change makes a change of a group, and marks the group if that may let members go on, or
// end their chance to.
func (x *PodGroups[P, D]) change(g *PodGroup[P, D], change func()) {
	able, complete, stuck, othersFirst := g.Able(), g.Complete(), g.stuck(), g.OthersFirst()
	change()
	if able != g.Able() || complete != g.Complete() || !stuck && g.stuck() || othersFirst && !g.OthersFirst() {
		x.Touch(g)
	}
}

// drop forgets a group without object and members.
func (x *PodGroups[P, D]) drop(g *PodGroup[P, D]) {
	if g.min > 0 || len(g.members) > 0 {
		return
	}
	x.Reopen(g)
	delete(x.touched, g)
	delete(x.byName, g.name)
	if x.placing == g {
		x.placing = nil
	}
}

// Touch marks a group as one to check.
func (x *PodGroups[P, D]) Touch(g *PodGroup[P, D]) { x.touched[g] = struct{}{} }

// TouchBlocked marks all groups with blocked members.
func (x *PodGroups[P, D]) TouchBlocked() {
	for _, g := range x.byName {
		if g.Blocked() > 0 {
			x.Touch(g)
		}
	}
}

// TouchRefused marks the groups that a queue refused, because it has more room now.
func (x *PodGroups[P, D]) TouchRefused(at queues.ID) {
	for g := range x.refused[at] {
		x.Touch(g)
	}
}

// Touched returns the marked groups by name. Each change calls it, nearly always without any.
func (x *PodGroups[P, D]) Touched() []*PodGroup[P, D] {
	if len(x.touched) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(x.touched), func(a, b *PodGroup[P, D]) int { return a.name.compare(b.name) })
}

// TakeTouched returns the marked groups by name, and removes the marks. If the group that
// is being placed is done, those that waited for it are marked first. The group that is
// being placed has a lease from now on as long as one of its members is admitted.
func (x *PodGroups[P, D]) TakeTouched(lease time.Duration, now time.Time) []*PodGroup[P, D] {
	if x.placing != nil && x.placing.Admitted() > 0 {
		x.until = now.Add(lease)
	}
	if len(x.waiting) > 0 && !x.OtherIsBeingPlaced(nil, now) {
		x.placing = nil
		maps.Copy(x.touched, x.waiting)
	}
	out := x.Touched()
	clear(x.touched)
	return out
}

// Refuse notes which queue has no room for the missing members of a group.
func (x *PodGroups[P, D]) Refuse(g *PodGroup[P, D], v queues.Verdict) {
	x.Reopen(g)
	g.refusal = v
	if x.refused[v.At] == nil {
		x.refused[v.At] = map[*PodGroup[P, D]]struct{}{}
	}
	x.refused[v.At][g] = struct{}{}
}

// HasRefused tells whether a queue refused a group.
func (x *PodGroups[P, D]) HasRefused(at queues.ID) bool { return len(x.refused[at]) > 0 }

// Wait notes that a group waits until another one is placed.
func (x *PodGroups[P, D]) Wait(g *PodGroup[P, D]) {
	x.Reopen(g)
	g.waits = true
	x.waiting[g] = struct{}{}
}

// Reopen clears the reason why the members of a group are blocked.
func (x *PodGroups[P, D]) Reopen(g *PodGroup[P, D]) {
	if at := g.refusal.At; !g.refusal.OK() {
		delete(x.refused[at], g)
		if len(x.refused[at]) == 0 {
			delete(x.refused, at)
		}
	}
	g.refusal, g.waits = queues.Granted, false
	delete(x.waiting, g)
}

// Place notes that the missing members of a group are being admitted.
func (x *PodGroups[P, D]) Place(g *PodGroup[P, D], until time.Time) { x.placing, x.until = g, until }

// OtherIsBeingPlaced tells whether another group is being placed that this group must wait for.
func (x *PodGroups[P, D]) OtherIsBeingPlaced(g *PodGroup[P, D], now time.Time) bool {
	return x.placing != nil && x.placing != g && x.placing.isPlacing() && x.until.After(now)
}

// Due is when other groups no longer wait for the group that is being placed; zero if none
// waits. The group's members may wait in Permit for as long as their PodGroup says; that
// choice is the user's.
func (x *PodGroups[P, D]) Due() time.Time {
	if len(x.waiting) > 0 && x.placing != nil && x.placing.Admitted() == 0 {
		return x.until
	}
	return time.Time{}
}

// Check verifies the counts of groups, and that every group with blocked members has an
// event that will let it go on. idle is false while checks of groups are due.
func (x *PodGroups[P, D]) Check(idle bool) error {
	var errs []error
	refused := 0
	for _, groups := range x.refused {
		refused += len(groups)
	}
	for _, g := range x.byName {
		_, isRefused := x.refused[g.refusal.At][g]
		_, waits := x.waiting[g]
		_, touched := x.touched[g]
		if isRefused {
			refused--
		}
		err := g.check(!idle || touched)
		switch {
		case isRefused == g.refusal.OK() || waits != g.waits:
			err = fmt.Errorf("refused %v, waiting %v; listed: %v, %v", !g.refusal.OK(), g.waits, isRefused, waits)
		case idle && !touched && waits && x.placing == nil:
			err = errors.New("it waits for another one, and there is none")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("PodGroup %s: %w", g.name, err))
		}
	}
	if refused != 0 {
		errs = append(errs, fmt.Errorf("PodGroups: %d more are listed as refused than there are", refused))
	}
	return errors.Join(errs...)
}
