package store

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// lost are pods that gave room on a node back without that the scheduler's queue was
// told of it as of the end of a pod there. Its cache lets go of the room, but nothing brings back who
// waits for it, but for the sweep of the queue after five minutes. So the store does.
// There are four kinds:
//
//   - A pod was bound and ended while the watch was interrupted. The informer tells of
//     its end with the state in which it saw the pod last, which has no node, and
//     NodeResourcesFit takes that for the end of a pod that had no room.
//   - A pod was given a node, and then it turned out that it runs on another: somebody
//     else bound it, or an earlier bind did succeed whose answer was lost. The queue is
//     told of a pod that came to the other node, and of nothing else.
//   - A pod runs where it was to run, and requests less than when it was given the node:
//     it was changed while the watch was interrupted, or while its cycle ran, which goes on
//     with what the pod requested when it began. The queue is told of a pod that came.
//   - A pod held a node and was nominated there, and does not run there: the filters
//     count a nominated pod as if it ran. If the nomination was not written yet, or its
//     write failed, then nobody is told of its end, which comes with the next cycle of
//     the pod.
//
// What becomes of one:
//
//	        lose                       Tick, at most once a second
//	gone ──────────► lost, untold ──────────────────────────────► lost, told
//	                                                                  │
//	  a cycle that found no node knows that it is gone (Vanished),    │
//	  or the scheduler's queue has been swept meanwhile               │
//	over ◄────────────────────────────────────────────────────────────┘
//
// Who is brought back may be tried before the scheduler's cache was told, for its
// listener is another one. Such a cycle finds the pod on its node still, and the one
// that was tried comes back by itself ([Store.ComeBack]).
type lost struct {
	pods []LostPod // in the order in which they were lost
	// toTell is true while somebody has to be brought back, told when that was done last.
	toTell bool
	told   time.Time
}

// LostPod is a pod that does not use a node as it did, and of which the scheduler's queue
// was not told that it did.
type LostPod struct {
	UID types.UID
	// Node is where the store had it; empty for a pod that the store did not have on
	// a node, and that the scheduler may have chosen one for.
	Node string
	// Nominated is true for a pod that was not there, but may have been nominated there
	// and counted as if it were.
	Nominated bool
	// Request is what it used there; zero where Node is empty, or for one that was nominated. A pod that is there and
	// requests something else is known to the scheduler as it is.
	Request resources.Vector
	// When the store was told.
	When time.Time
}

// lostFor is after how long a lost pod is forgotten: the scheduler's queue was swept by
// then, which tries everybody again.
const lostFor = 5 * time.Minute

// Lost tells that a pod is gone, and that the informer had last seen it without a
// node. It may be of no queue. Who waits for room on a node is brought back.
func (s *Store) Lost(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.foretell(&Pod{UID: uid})
	p, known := s.pods[uid]
	if !known {
		s.lose(LostPod{UID: uid, When: now})
		return
	}
	on, uses, foreign := p.on, p.had(), p.Foreign
	s.drop(p, now)
	switch {
	case on != nil:
		s.lose(LostPod{UID: uid, Node: on.name, Request: uses.Add(p.Uncounted), When: now})
	case foreign:
		s.lose(LostPod{UID: uid, When: now})
	}
}

// had is what the scheduler's cache may have an assumed pod with.
func (p *pod) had() resources.Vector {
	if p.outgrown != nil {
		return *p.outgrown
	}
	return p.uses
}

// confirmed looks whether an assumed pod runs as it was assumed.
func (s *Store) confirmed(p *pod, event *Pod, now time.Time) {
	had := p.had()
	p.outgrown = nil
	if p.Node != event.Node || !event.Request.Covers(had) {
		s.lose(LostPod{UID: p.UID, Node: p.Node, Request: had.Add(p.Uncounted), When: now})
	}
}

// lose notes that a pod does not use a node as it did.
func (s *Store) lose(l LostPod) {
	if s.started {
		s.lost.pods = append(s.lost.pods, l)
		s.lost.toTell = true
	}
}

// LostPods are those that a cycle which found no node is to look for, the first one
// first; empty nearly always.
func (s *Store) LostPods(now time.Time) []LostPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost.pods = slices.DeleteFunc(s.lost.pods, func(l LostPod) bool { return !now.Before(l.When.Add(lostFor)) })
	return slices.Clone(s.lost.pods)
}

// Vanished tells that a cycle knew that these pods are not there: their room was there for
// it, and nobody need be brought back for them again.
func (s *Store) Vanished(pods []LostPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost.pods = slices.DeleteFunc(s.lost.pods, func(l LostPod) bool {
		return slices.ContainsFunc(pods, func(v LostPod) bool { return v.UID == l.UID && v.Node == l.Node && v.When.Equal(l.When) })
	})
}

// ComeBack brings a pod back whose cycle found no node while a pod that is gone was on
// one still. It does nothing to a pod that is not parked.
func (s *Store) ComeBack(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if p, known := s.pods[uid]; known && p.state == parked && !p.kept {
		s.cool(p, latest(p.notUntil, now.Add(atMostEvery))) // not by the lane: nothing has happened
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
// which is why it is done once for all of a second.
func (s *Store) settleLost(now time.Time) {
	if due := s.lostDue(); due.IsZero() || due.After(now) {
		return
	}
	s.lost.toTell, s.lost.told = false, now
	for _, p := range sortedByUID(s.pods) {
		s.bringBack(p, now)
	}
}

// bringBack does for a parked pod what the scheduler's queue does when something
// happened that may help it. Who waits for the only node it can run on is roused by
// changes of that.
func (s *Store) bringBack(p *pod, now time.Time) {
	switch {
	case p.state != parked || p.kept || p.asks.awaits != nil:
	case p.Foreign || p.asks.holds:
		s.cool(p, latest(p.notUntil, now))
	default:
		s.requeue(p, now)
	}
}
