package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// planFrom returns when the next plan for a pod may be made after a loss, and the reason
// given to users until then.
func (p *pod) planFrom() (time.Time, reasons.Reason) {
	l := &p.asks.Losses
	if p.apart() && p.mates.Data.losses.Until.After(l.Until) {
		l = &p.mates.Data.losses
	}
	return l.Until, l.Why
}

// countLoss counts a loss of a pod, and returns the reason, which includes the pause. For
// pods of one PodGroup a loss during a pause belongs to an earlier plan and is not
// counted again.
func (s *Store) countLoss(p *pod, why reasons.Reason, now time.Time) (reasons.Reason, int) {
	l, waits := &p.asks.Losses, "the pod"
	if p.apart() {
		l, waits = &p.mates.Data.losses, fmt.Sprintf("any pod of PodGroup %s", p.mates.Name())
	}
	l.Lose(why, waits, &s.preemption.Options, now)
	p.asks.Refused, p.asks.TriedAt = l.Why, now
	s.history.say(p, reasons.HoldGivenUp, l.Until)
	return l.Why, l.Count
}

// furtherFrom returns when further victims may be chosen for a preemptor that can run on
// one node only, and the reason given to users until then. It is a loss if victims were
// deleted for it and more are needed.
func (s *Store) furtherFrom(p *pod, now time.Time) (time.Time, reasons.Reason) {
	h, held := s.preemption.Holds.Of(p.UID)
	if held && h.Binding() && h.Decision != p.asks.Losses.Room {
		why, n := s.countLoss(p, s.tookNode(p, s.cache.Nodes.Get(h.Node)), now)
		p.asks.Losses.Room, p.asks.Began = h.Decision, s.cache.Nodes.Arrivals()
		s.enterStep(p, Step{Kind: StepLost, Hold: h, Reason: why, Losses: n}, now)
		s.toWrite(Work{Ref: p.Ref(), Kind: WorkTell, Hold: h, Reason: why})
	}
	return p.planFrom()
}

// newcomers names the pods that came to a node or queue after a hold began, by arrival,
// with their scheduler if they are foreign; empty if none are known, as after a restart.
func newcomers(pods []*pod, began uint32) string {
	pods = slices.DeleteFunc(pods, func(p *pod) bool { return p.CameAfter(began) <= 0 })
	slices.SortFunc(pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.CameAfter(began), b.CameAfter(began)), cmp.Compare(a.UID, b.UID))
	})
	var names []string
	for _, p := range pods {
		name := p.Namespace + "/" + p.Name
		if p.Scheduler != "" {
			name += " of " + p.Scheduler
		}
		names = append(names, name)
	}
	return preemption.Listed(names)
}

// tookNode returns which pods took the room on a node that was made for a pod.
func (s *Store) tookNode(p *pod, n *cache.Node) reasons.Reason {
	others := slices.DeleteFunc(s.podsOn(n), func(o *pod) bool { return o == p })
	return preemption.RoomLost("on node "+n.Name(), newcomers(others, p.asks.Began))
}

// tookQueue returns which pods took the room in a queue that was made for a pod.
func (s *Store) tookQueue(p *pod, id queues.ID) reasons.Reason {
	var others []*pod
	for a := range s.apps.Records() {
		if !queues.IsBelow(s.cache.Tree(), a.Leaf, id) {
			continue
		}
		for o := range a.Living() {
			if o != &p.cachePod && o.On() != nil {
				others = append(others, s.pods[o.UID])
			}
		}
	}
	return preemption.RoomLost("in queue "+s.cache.Path(id), newcomers(others, p.asks.Began))
}
