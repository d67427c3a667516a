package store

import (
	"cmp"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Starting and calling back PodGroups; see podgroup.go.

// keep takes a waiting pod out of the order until its group can start.
func (s *Store) keep(p *pod) {
	s.leaveOrder(p)
	s.pending.Classes.Leave(&p.equivalenceClass, p.state)
	p.reason = reasons.Reason{}
	s.enter(p, state.GroupBlocked)
}

// startTogether is for a pod that is first in the order while its group lacks members.
// Either all missing members are admitted together with it, or it is kept.
func (s *Store) startTogether(p *pod, now time.Time) {
	g := p.mates
	s.pending.Groups.Reopen(g)
	if !g.Able() {
		s.keep(p)
		return
	}
	if s.pending.Groups.OthersPlaced(g, now) {
		s.pending.Groups.Wait(g)
		s.keep(p)
		return
	}
	if v := s.judgeTogether(g); !v.OK() {
		s.pending.Groups.Refuse(g, v)
		s.keep(p)
		return
	}
	s.pending.Groups.Place(g, now.Add(s.options.SlotLease))
	for _, m := range g.Next() {
		if m.state == state.GroupBlocked {
			s.toWaiting(m)
		}
		s.toAdmitted(m, now)
		s.out.activate = append(s.out.activate, m.Ref())
	}
	s.letMatesGo(g)
}

// callBackAll calls callBack for groups that cannot start any more.
func (s *Store) callBackAll() {
	for _, g := range s.pending.Groups.Touched() {
		if !g.Able() && g.Admitted() > 0 {
			s.callBack(g)
		}
	}
}

// callBack takes back the admission of members, because a cycle of a member failed or a
// member is gone, so the places of the others would be useless. The scheduler may still
// try them; it then gets the reason not to.
func (s *Store) callBack(g *podGroup) {
	for _, m := range g.Select(func(m *pod) bool { return m.state.HasSlot() && !m.asks.Holds() }) {
		s.vacate(m)
		s.toWaiting(m)
		s.pending.Keys.Remove(m.UID)
	}
}

// alone is the verdict on a pod that the scheduler tries although it was not admitted
// together with its group.
func (s *Store) alone(p *pod) queues.Verdict {
	if !p.apart() || p.state.HasSlot() || p.asks.Holds() {
		return queues.Granted
	}
	return queues.Verdict{At: queues.NoQueue, Reason: p.mates.Why(PodGroupLabel)}
}

// firstMember orders members: priority, then age, then UID.
func firstMember(a, b *pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// wakeTogether puts one member of each marked group into the order; the others follow if
// the group starts.
func (s *Store) wakeTogether(now time.Time) {
	for _, g := range s.pending.Groups.TakeTouched(s.options.SlotLease, now) {
		s.wakeGroup(g)
	}
}

func (s *Store) wakeGroup(g *podGroup) {
	s.partClasses(g)
	if refused := !g.Refusal().OK(); refused && g.Able() && s.stillRefused(g) {
		return
	}
	s.pending.Groups.Reopen(g)
	switch {
	case g.Blocked() == 0:
	case g.Missing() <= 0:
		s.letMatesGo(g)
	case g.Able() && g.In(state.Queued) == 0:
		s.toWaiting(g.InState(state.GroupBlocked)[0])
	}
}

// partClasses takes the members of an incomplete group out of their equivalence classes,
// because such members are tried with their group and not with a class.
func (s *Store) partClasses(g *podGroup) {
	if g.Complete() {
		return
	}
	for _, m := range g.Select(func(p *pod) bool { return p.equivalenceClass != nil }) {
		inOrder := m.state == state.Queued
		if inOrder {
			s.leaveOrder(m)
		}
		s.pending.Classes.Leave(&m.equivalenceClass, m.state)
		if inOrder {
			s.toWaiting(m)
		}
	}
}

// letMatesGo puts the kept members into the order, because no member is missing any more.
func (s *Store) letMatesGo(g *podGroup) {
	for _, m := range g.InState(state.GroupBlocked) {
		s.toWaiting(m)
	}
}

// retryTogether is called when a pod is due for a plan. It is not admitted alone; but if
// it had found no node, its group tries again.
func (s *Store) retryTogether(p *pod, now time.Time) {
	if p.state == state.Unschedulable {
		s.toWaiting(p)
	}
	s.arm(p, s.preemption.Later(now))
}
