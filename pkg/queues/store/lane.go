package store

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// The lane is the order of the pods that cool: they found no node a moment ago,
// and the scheduler thinks that something has happened since that may help. As
// long as others can go on, back-off keeps them from being tried with every such
// event. When nobody else goes on, there is nothing to protect, and room that
// became free would wait for the end of a back-off, or go to whose ends first
// instead of to whose turn it is. So the first pod of the lane goes on then, and
// the next one when it is known what became of that. The scheduler's own queue
// takes pods that back off in the same situation.
//
// What queues and applications use is only told to the lane while it has pods.

// enterLane puts a cooling pod into the lane.
func (s *Store) enterLane(p *pod) {
	a := p.app
	if a.inLane == nil {
		a.inLane = s.lane.NewApp(a.leaf, a.name.String(), a.submitted, s.class(a))
	}
	p.laneAsk = s.lane.Push(a.inLane, p.askKey(), p.Request)
	s.tellLane(a)
}

// leaveLane takes a pod out of the lane, if it is there.
func (s *Store) leaveLane(p *pod) {
	if p.laneAsk != nil {
		s.lane.Remove(p.laneAsk)
		p.laneAsk = nil
	}
}

// tellLane tells the lane what an application and its queues use.
func (s *Store) tellLane(a *app) {
	if s.lane.Eligible() == 0 {
		return
	}
	if a.inLane != nil {
		s.lane.SetAppUsed(a.inLane, a.used.Allocated.Add(a.used.Admitted))
	}
	for q := range s.draft.Ancestors(a.leaf) {
		s.lane.SetUsed(q.ID, q.Committed())
	}
}

// firstOfLane brings the first pod of the lane into the order, which has no
// other then, if nobody is let through.
func (s *Store) firstOfLane() bool {
	if s.window.taken > 0 {
		return false
	}
	ask, ok := s.lane.Next()
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

// indexQueue tells order and lane a queue whose settings they do not know.
func (s *Store) indexQueue(q *queues.Queue) {
	if s.index.Has(q.ID, q.Settings) {
		return
	}
	s.index.SetQueue(q.ID, q.Settings)
	s.index.SetUsed(q.ID, q.Committed())
	s.lane.SetQueue(q.ID, q.Settings)
	s.lane.SetUsed(q.ID, q.Committed())
}
