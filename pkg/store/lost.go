package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// LostPod is a pod that no longer uses a node as before; see [Store.LostPods].
type LostPod = pending.LostPod

// Lost handles the deletion of a pod that the informer had last seen without a node. It
// may be of no queue. Pods that wait for room on a node are brought back.
func (s *Store) Lost(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.preemption.Holds.Claimed(&objects.Pod{UID: uid})
	p, known := s.pods[uid]
	if !known {
		s.lose(pending.LostPod{UID: uid, When: now})
		return
	}
	on, uses, foreign := p.On(), p.had(), p.Foreign
	s.drop(p, now)
	switch {
	case on != nil:
		s.lose(pending.LostPod{UID: uid, Node: on.Name(), Request: uses.Add(p.Uncounted), When: now})
	case foreign:
		s.lose(pending.LostPod{UID: uid, When: now})
	}
}

// had is the request that the scheduler's cache may have for an assumed pod.
func (p *pod) had() resources.Vector {
	if p.assumedRequest != nil {
		return *p.assumedRequest
	}
	return p.Uses()
}

// confirmed checks whether an assumed pod runs as it was assumed.
func (s *Store) confirmed(p *pod, event *objects.Pod, now time.Time) {
	had := p.had()
	p.assumedRequest = nil
	if p.Node != event.Node || !event.Request.Covers(had) {
		s.lose(pending.LostPod{UID: p.UID, Node: p.Node, Request: had.Add(p.Uncounted), When: now})
	}
}

// lose notes that a pod no longer uses a node as before.
func (s *Store) lose(l pending.LostPod) {
	if s.started {
		s.pending.Lost.Add(l)
	}
}

// LostPods returns the pods that a cycle which found no node must check for, oldest
// first; nearly always empty.
func (s *Store) LostPods(now time.Time) []LostPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending.Lost.Pods(now)
}

// Vanished says that a cycle saw these pods as gone. It had their room, so no pod needs
// to be brought back for them again.
func (s *Store) Vanished(pods []LostPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.Lost.Vanished(pods)
}

// ComeBack brings back a pod that found no node while a pod that is gone was still
// counted. It does nothing to a pod in another state than Unschedulable.
func (s *Store) ComeBack(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if p, known := s.pods[uid]; known && p.state == state.Unschedulable {
		s.cool(p, latest(p.notUntil, now.Add(atMostEvery))) // not through the lane, because no event happened
	}
}

// settleLost brings back all pods that wait for room on a node. It visits all pods, so it
// runs at most once a second, for all lost pods of that second.
func (s *Store) settleLost(now time.Time) {
	if !s.pending.Lost.Tick(now) {
		return
	}
	for _, p := range sortedByUID(s.pods) {
		s.bringBack(p, now)
	}
}

// bringBack does for an unschedulable pod what the scheduler's queue does after an event that may
// help it. A pod that waits for the only node it can run on is skipped: changes of that
// node bring it back.
func (s *Store) bringBack(p *pod, now time.Time) {
	switch {
	case p.state != state.Unschedulable || s.preemption.NodeWaits.Of(p.UID) != "":
	case p.Foreign || p.asks.Holds():
		s.cool(p, latest(p.notUntil, now))
	default:
		s.requeue(p, now)
	}
}

// recall brings back a pod that tried to preempt too early. A pod of a queue that is
// still in its cycle is brought back when that cycle has failed.
func (s *Store) recall(p *pod, now time.Time) {
	asks := p.Foreign && mayAskForeign(p.Pod) || p.app != nil && p.RequiredNode != "" && p.state == state.Unschedulable
	if s.started && !s.standby && asks && s.pending.TooEarly.Take(p.UID) {
		s.rest(p, now)
	}
}

// recallAll calls recall for all pods when the store starts or begins to lead.
func (s *Store) recallAll(now time.Time) {
	for _, p := range sortedByUID(s.pods) {
		s.recall(p, now)
	}
}
