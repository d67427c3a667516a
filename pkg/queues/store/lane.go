package store

import (
	"k8s.io/apimachinery/pkg/types"
)

// The lane is the order of the pods that cool: they found no node a moment ago,
// and the scheduler thinks that something has happened since that may help. As
// long as others can go on, back-off keeps them from being tried with every such
// event. When nobody else goes on, there is nothing to protect, and room that
// became free would wait for the end of a back-off, or go to whose ends first
// instead of to whose turn it is. So the first pod of the lane goes on then, and
// the next one when it is known what became of that. The scheduler's own queue
// takes pods that back off in the same situation.

// enterLane puts a cooling pod into the lane.
func (s *Store) enterLane(p *pod) { p.laneAsk = s.lane.push(s, p) }

// leaveLane takes a pod out of the lane, if it is there.
func (s *Store) leaveLane(p *pod) {
	if p.laneAsk != nil {
		s.lane.index.Remove(p.laneAsk)
		p.laneAsk = nil
	}
}

// firstOfLane brings the first pod of the lane into the order, which has no
// other then, if nobody is let through.
func (s *Store) firstOfLane() bool {
	if s.window.taken > 0 {
		return false
	}
	ask, ok := s.lane.index.Next()
	if !ok {
		return false
	}
	p := s.pods[types.UID(ask.UID())]
	s.leaveCooling(p)
	s.toWaiting(p)
	return true
}

// leaveCooling takes a cooling pod out of the deadlines and the lane.
func (s *Store) leaveCooling(p *pod) {
	s.clearDeadline(p)
	s.leaveLane(p)
}
