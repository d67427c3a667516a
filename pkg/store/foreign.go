package store

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Foreign pods belong to no queue. The store tracks them for their usage of nodes. Some
// foreign pods may be preemptors: pending pods that can run on one node only, of profiles
// of this process (see required.go).

// mayAskForeign tells whether a foreign pod may be a preemptor.
func mayAskForeign(p *objects.Pod) bool {
	return p.Peer && p.RequiredNode != "" && p.Node == "" && !p.Deleting && !p.Gated
}

// upsertForeign handles an event of a foreign pod.
func (s *Store) upsertForeign(p *pod, event *objects.Pod, now time.Time) {
	asks := mayAskForeign(event)
	switch {
	case event.Terminal || event.Node == "" && !asks:
		if p != nil {
			s.drop(p, now)
		}
		return
	case p == nil:
		p = newPod(event, s.noTurn)
		p.state = state.Unschedulable
		s.pods[p.UID] = p
		s.cache.Types.Note(p.Pod)
		s.countForeign(p, 1)
		s.inherit(p, now)
		s.cache.Protection.Change(cache.Guarded{}, p.guarded())
	case !p.Foreign:
		return // a pod does not change its scheduler
	}
	if asks {
		s.changeForeign(p, event, now)
		return
	}
	touched := !p.leaves() && event.Deleting || looksDifferent(p.Pod, event)
	if p.state != state.Bound {
		s.park(p)
		s.disarm(p)
		s.enter(p, state.Bound)
	}
	s.renewForeign(p, event)
	s.moveForeign(p, event.Node)
	if touched {
		s.touchPod(p)
	}
	s.endHold(p, reservations.Bound, reasons.Reason{}, now)
	s.follow(p, now)
	if p.RequiredNode != "" {
		s.supersede(p.On(), now)
	}
	s.atWork(p, now)
}

// moveForeign puts a foreign pod on its node.
func (s *Store) moveForeign(p *pod, node string) {
	came := p.On() == nil || p.On().Name() != node
	if came && p.On() != nil {
		s.history.noteForeign(ForeignWent, p)
	}
	s.settleOn(p, node, p.Request)
	if came {
		s.history.noteForeign(ForeignCame, p)
	}
}

// changeForeign handles an event of a foreign pod that may be a preemptor.
func (s *Store) changeForeign(p *pod, event *objects.Pod, now time.Time) {
	if p.state == state.Bound {
		return // an old event
	}
	if !p.Request.Equal(event.Request) || p.Priority != event.Priority {
		s.endHold(p, reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod was changed"), now)
		p.asks.Impossible = false
		s.rest(p, now)
	}
	s.renewForeign(p, event)
	s.follow(p, now)
	s.recall(p, now)
}

// renewForeign takes over the content of an event and the owners of the pod.
func (s *Store) renewForeign(p *pod, event *objects.Pod) {
	s.history.changed(p)
	same := p.Deleting == event.Deleting && slices.Equal(p.Owners, event.Owners)
	if !same {
		s.countForeign(p, -1)
	}
	s.takeOver(p, event)
	if !same {
		s.countForeign(p, 1)
	}
}

// countForeign adds n to the number of living pods of each owner of a foreign pod, unless
// the pod is being deleted.
func (s *Store) countForeign(p *pod, n int) {
	if p.Deleting {
		return
	}
	for _, owner := range p.Owners {
		s.cache.Originators.Owns(owner, n)
	}
	s.routeOriginators()
}

// dropForeign removes a foreign pod.
func (s *Store) dropForeign(p *pod, now time.Time) {
	s.suspectRefusal(p, now)
	node := p.On()
	s.endHold(p, reservations.Deleted, reasons.New(reasons.HoldGivenUp, "the pod is gone"), now)
	if p.state == state.BackingOff {
		s.leaveCooling(p)
	}
	s.disarm(p)
	s.countForeign(p, -1)
	s.cache.Protection.Change(p.guarded(), cache.Guarded{})
	delete(s.pods, p.UID)
	s.cache.Types.Forget(p.UID)
	if node != nil {
		s.history.noteForeign(ForeignWent, p)
	}
	s.settleOn(p, "", resources.Vector{})
	s.history.pods.Remove(p, p.UID)
	s.gone(p.UID, now)
	if node != nil {
		s.wakeHolders(node.Name(), "", now)
	}
}
