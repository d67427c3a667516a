package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// planFrom returns when the next plan for a pod may be made after a loss, and the reason
// given to users until then.
func (s *Store) planFrom(p *pod) (time.Time, reasons.Reason) {
	l := &p.asks.Losses
	if p.apart() && p.mates.Data.losses.Until.After(l.Until) {
		l = &p.mates.Data.losses
	}
	return l.Until, l.Why
}

// isLost tells whether a hold that ends is lost. A standby cannot know that, and counts
// no losses.
func (s *Store) isLost(h *reservations.Hold, e ending) bool {
	if s.standby || e.node != "" || e.end == reservations.Bound || e.end == reservations.Deleted {
		return false
	}
	return h.Binding() || e.end == reservations.TimedOut || e.failed
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
	s.sayUntil(p, reasons.HoldGivenUp, l.Until)
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
	return s.planFrom(p)
}

// roomLost is the reason for lost room on a node or in a queue. Without newcomers, as
// when the preemptor or the quota changed, it names no pods.
func roomLost(where, newcomers string) reasons.Reason {
	if newcomers == "" {
		return reasons.New(reasons.HoldSuperseded, "the room %s was not enough any more", where)
	}
	return reasons.New(reasons.HoldSuperseded, "others took the room %s: %s", where, newcomers)
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
	return listed(names)
}

const mostNamed = 5

// listed joins the first names and counts the others.
func listed(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// tookNode returns which pods took the room on a node that was made for a pod.
func (s *Store) tookNode(p *pod, n *cache.Node) reasons.Reason {
	others := slices.DeleteFunc(s.podsOn(n), func(o *pod) bool { return o == p })
	return roomLost("on node "+n.Name(), newcomers(others, p.asks.Began))
}

// tookQueue returns which pods took the room in a queue that was made for a pod.
func (s *Store) tookQueue(p *pod, id queues.ID) reasons.Reason {
	var others []*pod
	for leaf, apps := range s.leaves {
		if !s.isBelow(leaf, id) {
			continue
		}
		for _, a := range apps {
			for _, e := range a.living.Items() {
				if e.pod != p && e.pod.On() != nil {
					others = append(others, e.pod)
				}
			}
		}
	}
	return roomLost("in queue "+s.path(id), newcomers(others, p.asks.Began))
}

// isBelow tells whether a leaf is the queue itself or below it.
func (s *Store) isBelow(leaf, id queues.ID) bool {
	for q := range s.draft.Ancestors(leaf) {
		if q.ID == id {
			return true
		}
	}
	return false
}
