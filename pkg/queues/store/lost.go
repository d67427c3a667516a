package store

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// lost are pods that ended while the watch was interrupted, and of which the
// informer never saw that they had a node. The scheduler's cache lets go of the room
// when it is told, but its queue is told with the pod as it was last seen, without a
// node, and NodeResourcesFit takes that for the end of a pod that had no room:
// nothing but the sweep of that queue, after five minutes, would bring back who
// waits for it. So the store does.
//
//	        Lost                       Tick, at most once a second
//	gone ──────────► lost, untold ─────────────────────────────► lost, told
//	                                                                │
//	  a cycle that found no node knows that it is gone (Vanished),  │
//	  or the scheduler's queue has been swept meanwhile             │
//	over ◄──────────────────────────────────────────────────────────┘
//
// Who is brought back may be tried before the scheduler's cache was told, for its
// listener is another one. Such a cycle finds the pod on its node still, and the one
// that was tried comes back by itself ([Store.ComeBack]).
type lost struct {
	ends []LostPod // in the order in which they were told
	// toTell is true while somebody has to be brought back, told when that was done last.
	toTell bool
	told   time.Time
}

// LostPod is a pod that is gone, and of which the scheduler's queue was not told
// that it had a node.
type LostPod struct {
	UID types.UID
	// Node is where the store had it; empty for a pod that the store did not have on
	// a node, and that the scheduler may have chosen one for.
	Node string
	// When the store was told.
	When time.Time
}

// lostFor is after how long an end is forgotten: the scheduler's queue was swept by
// then, which tries everybody again.
const lostFor = 5 * time.Minute

// Lost tells that a pod is gone, and that the informer had last seen it without a
// node. It may be of no queue. Who waits for room on a node is brought back.
func (s *Store) Lost(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.foretell(&Pod{UID: uid})
	end := LostPod{UID: uid, When: now}
	if p, known := s.pods[uid]; known {
		used := p.on != nil
		if used {
			end.Node = p.on.name
		}
		foreign := p.Foreign
		s.drop(p, now)
		if !used && !foreign {
			return
		}
	}
	if s.started {
		s.lost.ends = append(s.lost.ends, end)
		s.lost.toTell = true
	}
}

// LostPods are those that a cycle which found no node is to look for, the first one
// first; empty nearly always.
func (s *Store) LostPods() []LostPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lost.ends)
}

// Vanished tells that a cycle knew that these pods are gone: their room was there for
// it, and nobody need be brought back for them again.
func (s *Store) Vanished(ends []LostPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost.ends = slices.DeleteFunc(s.lost.ends, func(e LostPod) bool { return slices.Contains(ends, e) })
}

// ComeBack brings a pod back whose cycle found no node while a pod that is gone was on
// one still. It does nothing to a pod that is not parked.
func (s *Store) ComeBack(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if p, known := s.pods[uid]; known {
		s.bringBack(p, now.Add(atMostEvery), now)
	}
}

// lostDue is when those who wait for room are brought back; zero for never.
func (s *Store) lostDue() time.Time {
	if !s.lost.toTell {
		return time.Time{}
	}
	return s.lost.told.Add(atMostEvery)
}

// settleLost brings back all who wait for room on a node. It walks over all pods,
// which is why it is done once for all ends of a second.
func (s *Store) settleLost(now time.Time) {
	if due := s.lostDue(); due.IsZero() || due.After(now) {
		return
	}
	s.lost.toTell, s.lost.told = false, now
	s.lost.ends = slices.DeleteFunc(s.lost.ends, func(e LostPod) bool { return !now.Before(e.When.Add(lostFor)) })
	for _, p := range sortedByUID(s.pods) {
		s.bringBack(p, now, now)
	}
}

// bringBack does for a parked pod what the scheduler's queue does when something
// happened that may help it; who holds a node, or waits for the only one it can run
// on, is let through at a time.
func (s *Store) bringBack(p *pod, until, now time.Time) {
	switch {
	case p.state != parked || p.kept:
	case p.Foreign || p.asks.holds:
		s.cool(p, latest(p.notUntil, until))
	default:
		s.requeue(p, now)
	}
}
