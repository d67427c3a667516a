package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Foreign pods belong to no queue. They are here for what they use of their
// nodes; one without a node is not.

// upsertForeign takes an event of a foreign pod.
func (s *Store) upsertForeign(p *pod, event Pod, now time.Time) {
	switch {
	case event.Terminal || event.Node == "":
		if p != nil {
			s.drop(p, now)
		}
		return
	case p == nil:
		p = newPod(event)
		p.state = bound
		s.pods[p.UID] = p
	case !p.Foreign:
		return // a pod does not change its scheduler
	}
	left := !p.leaves() && event.Deleting
	p.Pod = event
	s.settleOn(p, event.Node, event.Request)
	if left {
		s.touchPod(p)
	}
}

// dropForeign forgets a foreign pod.
func (s *Store) dropForeign(p *pod, now time.Time) {
	node := p.on
	delete(s.pods, p.UID)
	s.settleOn(p, "", resources.Vector{})
	s.gone(p.UID, now)
	if node != nil {
		s.wakeHolders(node.name, "", now)
	}
}
