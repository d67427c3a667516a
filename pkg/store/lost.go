package store

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// lost has pods that freed room on a node without an event in the scheduling queue for
// the end of a pod there. The scheduler's cache frees the room, but nothing brings back
// the pods that wait for it until the queue flushes unschedulable pods after five
// minutes. So the store brings them back. There are four kinds:
//
//   - A pod was bound and ended while the watch was interrupted. The informer reports its
//     end with the last state it had seen, without a node. NodeResourcesFit ignores that
//     event, because a pod without a node frees no room.
//   - A pod was assigned a node, but it runs on another one: another scheduler bound it,
//     or an earlier bind succeeded and its answer was lost. The scheduling queue gets
//     only the event that a pod came to the other node.
//   - A pod runs on its assigned node but requests less than when it was assigned: it
//     changed while the watch was interrupted, or during its cycle, which goes on with
//     the older request. The scheduling queue gets only the event that a pod came.
//   - A pod held a node, was nominated there, and does not run there. The filters count a
//     nominated pod as running. If the nomination was not written yet, or the write
//     failed, then the next cycle of the pod ends the nomination without any event.
//
// The states of a lost pod:
//
//	        lose                       Tick, at most once a second
//	gone ──────────► lost, untold ──────────────────────────────► lost, told
//	                                                                  │
//	  a cycle that found no node knew that it is gone (Vanished),     │
//	  or the scheduler's queue has been flushed since                 │
//	over ◄────────────────────────────────────────────────────────────┘
//
// A pod that is brought back may be tried before the scheduler's cache is updated,
// because the cache has a separate listener. If such a cycle still finds the lost pod on
// its node, the tried pod comes back by itself ([Store.ComeBack]).
type lost struct {
	pods []LostPod // in the order in which they were lost
	// toTell is true while waiting pods must be brought back; told is when that was last
	// done.
	toTell bool
	told   time.Time
}

// LostPod is a pod that no longer uses a node as before, without an event for that in the
// scheduling queue.
type LostPod struct {
	UID types.UID
	// Node is where the store had the pod; empty if the store had it on no node, although
	// the scheduler may have chosen one.
	Node string
	// Nominated is true for a pod that was not on the node, but may have been nominated
	// there and counted as running.
	Nominated bool
	// Request is what it used there; zero if Node is empty or the pod was only nominated.
	// If the pod is still there with another request, the scheduler knows the current
	// one.
	Request resources.Vector
	// When is the time at which the store learned it.
	When time.Time
}

// lostFor is after how long a lost pod is forgotten: by then the scheduler's queue has
// flushed and retried all unschedulable pods.
const lostFor = 5 * time.Minute

// Lost handles the deletion of a pod that the informer had last seen without a node. It
// may be of no queue. Pods that wait for room on a node are brought back.
func (s *Store) Lost(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.preemption.Holds.Claimed(&objects.Pod{UID: uid})
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

// had is the request that the scheduler's cache may have for an assumed pod.
func (p *pod) had() resources.Vector {
	if p.assumedRequest != nil {
		return *p.assumedRequest
	}
	return p.uses
}

// confirmed checks whether an assumed pod runs as it was assumed.
func (s *Store) confirmed(p *pod, event *objects.Pod, now time.Time) {
	had := p.had()
	p.assumedRequest = nil
	if p.Node != event.Node || !event.Request.Covers(had) {
		s.lose(LostPod{UID: p.UID, Node: p.Node, Request: had.Add(p.Uncounted), When: now})
	}
}

// lose notes that a pod no longer uses a node as before.
func (s *Store) lose(l LostPod) {
	if s.started {
		s.lost.pods = append(s.lost.pods, l)
		s.lost.toTell = true
	}
}

// LostPods returns the pods that a cycle which found no node must check for, oldest
// first; nearly always empty.
func (s *Store) LostPods(now time.Time) []LostPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost.pods = slices.DeleteFunc(s.lost.pods, func(l LostPod) bool { return !now.Before(l.When.Add(lostFor)) })
	return slices.Clone(s.lost.pods)
}

// Vanished says that a cycle saw these pods as gone. It had their room, so no pod needs
// to be brought back for them again.
func (s *Store) Vanished(pods []LostPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost.pods = slices.DeleteFunc(s.lost.pods, func(l LostPod) bool {
		return slices.ContainsFunc(pods, func(v LostPod) bool { return v.UID == l.UID && v.Node == l.Node && v.When.Equal(l.When) })
	})
}

// ComeBack brings back a pod that found no node while a pod that is gone was still
// counted. It does nothing to a pod that is not parked.
func (s *Store) ComeBack(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if p, known := s.pods[uid]; known && p.state == parked && !p.kept {
		s.cool(p, latest(p.notUntil, now.Add(atMostEvery))) // not through the lane, because no event happened
	}
}

// lostDue is when the pods that wait for room are brought back; zero for never.
func (s *Store) lostDue() time.Time {
	if !s.lost.toTell {
		return time.Time{}
	}
	return s.lost.told.Add(atMostEvery)
}

// settleLost brings back all pods that wait for room on a node. It visits all pods, so it
// runs at most once a second, for all lost pods of that second.
func (s *Store) settleLost(now time.Time) {
	if due := s.lostDue(); due.IsZero() || due.After(now) {
		return
	}
	s.lost.toTell, s.lost.told = false, now
	for _, p := range sortedByUID(s.pods) {
		s.bringBack(p, now)
	}
}

// bringBack does for a parked pod what the scheduler's queue does after an event that may
// help it. A pod that waits for the only node it can run on is skipped: changes of that
// node bring it back.
func (s *Store) bringBack(p *pod, now time.Time) {
	switch {
	case p.state != parked || p.kept || p.asks.awaits != nil:
	case p.Foreign || p.asks.holds:
		s.cool(p, latest(p.notUntil, now))
	default:
		s.requeue(p, now)
	}
}
