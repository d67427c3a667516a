package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Starting and calling back PodGroups; see podgroup.go.

// keep takes a waiting pod out of the order until its group can start.
func (s *Store) keep(p *pod) {
	s.leaveOrder(p)
	s.leaveClass(p)
	p.reason = reasons.Reason{}
	s.enter(p, state.GroupBlocked)
}

// startTogether is for a pod that is first in the order while its group lacks members.
// Either all missing members are admitted together with it, or it is kept.
func (s *Store) startTogether(p *pod, now time.Time) {
	g := p.mates
	s.reopen(g)
	if !g.able() {
		s.keep(p)
		return
	}
	if s.othersPlaced(g, now) {
		g.inLine = true
		s.together.line[g] = struct{}{}
		s.keep(p)
		return
	}
	if v := s.judgeTogether(g); !v.OK() {
		s.refuseTogether(g, v)
		s.keep(p)
		return
	}
	s.together.placing, s.together.until = g, now.Add(s.options.SlotLease)
	for _, m := range g.next() {
		if m.state == state.GroupBlocked {
			s.toWaiting(m)
		}
		s.toAdmitted(m, now)
		s.activate = append(s.activate, m.Ref())
	}
	s.letMatesGo(g)
}

// callBackAll calls callBack for groups that cannot start any more.
func (s *Store) callBackAll() {
	for _, g := range s.touchedGroups() {
		if !g.able() && g.admitted() > 0 {
			s.callBack(g)
		}
	}
}

// callBack takes back the admission of members, because a cycle of a member failed or a
// member is gone, so the places of the others would be useless. The scheduler may still
// try them; it then gets the reason not to.
func (s *Store) callBack(g *podGroup) {
	for _, m := range g.sorted(func(m *pod) bool { return m.state.HasSlot() && !m.asks.Holds() }) {
		s.vacate(m)
		s.toWaiting(m)
		s.keys.Remove(m.UID)
	}
}

// alone is the verdict on a pod that the scheduler tries although it was not admitted
// together with its group.
func (s *Store) alone(p *pod) queues.Verdict {
	if !p.apart() || p.state.HasSlot() || p.asks.Holds() {
		return queues.Granted
	}
	return queues.Verdict{At: queues.NoQueue, Reason: p.mates.why()}
}

// next returns as many members as are missing, in the order of sorted.
func (g *podGroup) next() []*pod {
	ready := g.ready()
	return ready[:min(len(ready), g.missing())]
}

// ready returns the members that can go on.
func (g *podGroup) ready() []*pod {
	return g.sorted(func(p *pod) bool { return p.state == state.Queued || p.state == state.GroupBlocked })
}

// first returns the first kept member; nil if there is none.
func (g *podGroup) first() *pod {
	var first *pod
	for _, p := range g.members {
		if p.state == state.GroupBlocked && (first == nil || firstMember(p, first) < 0) {
			first = p
		}
	}
	return first
}

// sorted returns the members selected by which: priority, then age, then UID.
func (g *podGroup) sorted(which func(*pod) bool) []*pod {
	var out []*pod
	for _, p := range g.members {
		if which(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, firstMember)
	return out
}

// firstMember orders members: priority, then age, then UID.
func firstMember(a, b *pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// reopen clears the reason why the members of a group are kept.
func (s *Store) reopen(g *podGroup) {
	if !g.refusal.OK() {
		delete(s.together.refused[g.refusal.At], g)
		if len(s.together.refused[g.refusal.At]) == 0 {
			delete(s.together.refused, g.refusal.At)
		}
	}
	g.refusal, g.inLine = queues.Granted, false
	delete(s.together.line, g)
}

// othersPlaced tells whether another group is being placed that this group must wait for.
func (s *Store) othersPlaced(g *podGroup, now time.Time) bool {
	t := &s.together
	return t.placing != nil && t.placing != g && s.isPlacing(t.placing) && t.until.After(now)
}

// placingDue is when other groups no longer wait for the group that is being placed; zero
// if none waits. The group's members may wait in Permit for as long as their PodGroup
// says; that choice is the user's.
func (s *Store) placingDue() time.Time {
	if t := &s.together; len(t.line) > 0 && t.placing != nil && t.placing.admitted() == 0 {
		return t.until
	}
	return time.Time{}
}

// isPlacing tells whether the result of a group is expected soon. It is not while a
// member waits for victims on the node it holds, nor if a member is gone.
func (s *Store) isPlacing(g *podGroup) bool {
	if g.min == 0 || g.complete() || len(g.members) < g.min {
		return false
	}
	if g.admitted() > 0 {
		return true
	}
	if g.in[state.Assumed] == 0 {
		return false
	}
	for _, p := range g.members {
		if p.asks.Holds() {
			return false
		}
	}
	return true
}

// touchAllGroups marks all groups with kept members. It is called when the configuration,
// and with it any quota, changed.
func (s *Store) touchAllGroups() {
	for _, g := range s.together.groups {
		if g.blocked() > 0 {
			s.together.touched[g] = struct{}{}
		}
	}
}

// reconsiderTogether marks the groups that a queue refused, because it has more room now.
func (s *Store) reconsiderTogether(id queues.ID) {
	for g := range s.together.refused[id] {
		s.together.touched[g] = struct{}{}
	}
}

// wakeTogether puts one member of each marked group into the order; the others follow if
// the group starts.
func (s *Store) wakeTogether(now time.Time) {
	t := &s.together
	if t.placing != nil && t.placing.admitted() > 0 {
		t.until = now.Add(s.options.SlotLease)
	}
	if len(t.line) > 0 && !s.othersPlaced(nil, now) {
		t.placing = nil
		maps.Copy(t.touched, t.line)
	}
	if len(t.touched) == 0 {
		return
	}
	groups := s.touchedGroups()
	clear(t.touched)
	for _, g := range groups {
		s.wakeGroup(g)
	}
}

func (s *Store) wakeGroup(g *podGroup) {
	s.partClasses(g)
	if refused := !g.refusal.OK(); refused && g.able() && s.stillRefused(g) {
		return
	}
	s.reopen(g)
	switch {
	case g.blocked() == 0:
	case g.missing() <= 0:
		s.letMatesGo(g)
	case g.able() && g.in[state.Queued] == 0:
		s.toWaiting(g.first())
	}
}

// partClasses takes the members of an incomplete group out of their equivalence classes,
// because such members are tried with their group and not with a class.
func (s *Store) partClasses(g *podGroup) {
	if g.complete() {
		return
	}
	for _, m := range g.sorted(func(p *pod) bool { return p.equivalenceClass != nil }) {
		inOrder := m.state == state.Queued
		if inOrder {
			s.leaveOrder(m)
		}
		s.leaveClass(m)
		if inOrder {
			s.toWaiting(m)
		}
	}
}

// touchedGroups returns the marked groups by name.
func (s *Store) touchedGroups() []*podGroup {
	if len(s.together.touched) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(s.together.touched), func(a, b *podGroup) int { return a.name.compare(b.name) })
}

// letMatesGo puts the kept members into the order, because no member is missing any more.
func (s *Store) letMatesGo(g *podGroup) {
	if g.blocked() == 0 {
		return
	}
	for _, m := range g.ready() {
		if m.state == state.GroupBlocked {
			s.toWaiting(m)
		}
	}
}

// retryTogether is called when a pod is due for a plan. It is not admitted alone; but if
// it had found no node, its group tries again.
func (s *Store) retryTogether(p *pod, now time.Time) {
	if p.state == state.Unschedulable {
		s.toWaiting(p)
	}
	s.arm(p, s.later(now))
}
