package store

import "k8s.io/apimachinery/pkg/types"

// The lane is the order of backing-off pods that found no node and may be helped by an
// event since. While other pods can be admitted, back-off keeps these pods from being
// tried at every such event. When no other pod can be, it would leave freed room unused,
// or give it to the pod whose back-off ends first. So the first pod of the lane is admitted
// then, and the next one after that cycle. The scheduler's queue does the same.

// enterLane puts a backing-off pod into the lane, or an unschedulable one into the order of
// its own; see ahead.go.
func (s *Store) enterLane(p *pod) {
	p.laneAsk = s.pending.LaneOf(p.state).Push(s.cache.Tree(), p.app, p.app.info(s.cache.Tree()), p.askKey(), p.Request, p.apartKind())
}

// leaveLane takes a pod out of its lane, if it is in one. Its state is still the same.
func (s *Store) leaveLane(p *pod) {
	if p.laneAsk != nil {
		s.pending.LaneOf(p.state).Remove(p.laneAsk)
		p.laneAsk = nil
	}
}

// firstOfLane moves the first pod of the lane into the order if no pod is admitted. The
// order has no other pod that can go on at that time.
func (s *Store) firstOfLane() bool {
	if s.pending.Window.Taken() > 0 {
		return false
	}
	ask, ok := s.pending.Lane.Next()
	if !ok {
		return false
	}
	p := s.pods[types.UID(ask.UID())]
	s.leaveCooling(p)
	s.toWaiting(p)
	return true
}

// leaveCooling takes a pod that failed out of the deadlines and out of its lane.
func (s *Store) leaveCooling(p *pod) {
	s.pending.Timers.Clear(&p.timer)
	s.leaveLane(p)
}
