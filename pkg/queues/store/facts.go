package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// What plans have to know of pods beside their queues and budgets: which opted out
// (law 1), and which are originators.

// UpsertPriorityClass tells whether the pods of a PriorityClass are opted out.
func (s *Store) UpsertPriorityClass(name string, optOut bool, now time.Time) {
	s.lock()
	defer s.unlock(now)
	if s.optedOut[name] == optOut {
		return
	}
	if s.optedOut[name] = optOut; !optOut {
		delete(s.optedOut, name)
	}
	s.touchAll()
}

// DeletePriorityClass tells that a PriorityClass is gone.
func (s *Store) DeletePriorityClass(name string, now time.Time) {
	s.UpsertPriorityClass(name, false, now)
}

// isOptedOut tells whether a pod should not be preempted (law 1): the pod's own
// word overrides its PriorityClass in either direction, unless it does not count.
func (s *Store) isOptedOut(p *pod) bool {
	if p.OptOut != OptOutUnsaid && !s.preemption.IgnorePodOptOut {
		return p.OptOut == OptOutYes
	}
	return s.optedOut[p.Class]
}

// originator tells whether the pod owns another living pod of its application,
// or is its oldest living pod and not the only one. A pod of no queue has no
// application: it is one if it owns any other.
func (s *Store) originator(p *pod) bool {
	a := p.app
	if a == nil {
		return s.owned[p.UID] > 0
	}
	if n := a.owned[p.UID]; n > 0 {
		return true
	}
	first, ok := a.living.First()
	return ok && first.pod == p && a.living.Len() > 1
}

// live follows whether a pod of an application lives: it is known and not
// about to be deleted.
func (s *Store) live(p *pod, lives bool) {
	a := p.app
	if (p.elder.at != ranking.Outside) == lives {
		return
	}
	before, _ := a.living.First()
	size := a.living.Len()
	a.living.Update(&p.elder, lives)
	n := 1
	if !lives {
		n = -1
	}
	for _, owner := range p.Owners {
		s.owns(a, owner, n)
	}
	after, _ := a.living.First()
	if before != after || min(size, 2) != min(a.living.Len(), 2) {
		for _, e := range []*seniority{before, after} {
			if e != nil {
				s.touchPod(e.pod)
			}
		}
	}
}

// owns counts one more or less pod of an application that a pod owns.
func (s *Store) owns(a *app, owner types.UID, n int) {
	if a.owned == nil {
		a.owned = map[types.UID]int{}
	}
	if a.owned[owner] += n; a.owned[owner] == 0 {
		delete(a.owned, owner)
	}
	s.ownsAny(owner, n)
}

// ownsAny counts one more or less living pod, of any application or none, that a
// pod owns.
func (s *Store) ownsAny(owner types.UID, n int) {
	if s.owned[owner] += n; s.owned[owner] == 0 {
		delete(s.owned, owner)
	}
	if o := s.pods[owner]; o != nil {
		s.touchPod(o)
	}
}

// protection says why a pod is never a victim.
func (s *Store) protection(p *pod) victims.Protection {
	if p.leaves() {
		return victims.Leaving
	}
	return s.ownProtection(p)
}

// ownProtection says the same of a pod that does not leave.
func (s *Store) ownProtection(p *pod) victims.Protection {
	switch {
	case p.Static:
		return victims.Static
	case p.RequiredNode != "":
		return victims.DaemonSet
	case p.state == assumed && !s.waitingInPermit[p.UID]:
		return victims.Binding
	case p.Foreign:
		return victims.Foreign
	}
	return victims.Unprotected
}
