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
)

// A hold is lost if it had a cost and its preemptor is not bound: pods were disrupted for
// it, the node was kept free until the time-out, or the executor could not carry out the
// plan. After each loss no plan is made for the preemptor for the retry interval, doubled
// with each further loss in a row. Without this pause, a preemptor that competes with
// another scheduler would empty a node, lose the room, and go on to the next node at
// once.
//
//	hold lost ──► pause: retry interval ──► plan ──► hold lost ──► pause: twice as long ──► ...
//	                                          │
//	                                          └──► bound: the count ends with the preemptor
//
// The pods of a PodGroup that has not started share one count. For a pod that can run on
// one node only, the node stays held, and the pause applies to further victims; if its
// hold ended, it does not hold the node again before the pause ends.

// losses counts the holds in a row that a preemptor, or a PodGroup that has not started,
// has lost.
type losses struct {
	count int
	until time.Time      // no plan before this time
	why   reasons.Reason // the reason given to users until then
	// room is set for a preemptor that holds the only node it can run on: the ID of the
	// last decision that made room and lost it. The hold goes on, and the loss is counted
	// once.
	room string
	// placedAt is when the preemptor was bound to the held node on which room was made.
	placedAt time.Time
}

// The pause is doubled at most mostDoublings times. It is at most longestPause, or the
// retry interval if that is longer.
const (
	mostDoublings = 6
	longestPause  = time.Hour
)

// pause is how long no plan is made after the n-th loss in a row.
func (s *Store) pause(n int) time.Duration {
	retry := s.preemption.RetryInterval
	return min(retry<<min(n-1, mostDoublings), max(retry, longestPause))
}

// planFrom returns when the next plan for a pod may be made after a loss, and the reason
// given to users until then.
func (s *Store) planFrom(p *pod) (time.Time, reasons.Reason) {
	l := &p.asks.losses
	if p.apart() && p.mates.losses.until.After(l.until) {
		l = &p.mates.losses
	}
	return l.until, l.why
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
	l, waits := &p.asks.losses, "the pod"
	if p.apart() {
		l, waits = &p.mates.losses, fmt.Sprintf("any pod of PodGroup %s", p.mates.name)
	}
	if !now.Before(l.until) {
		l.count++
	}
	l.set(why, waits, s.pause(l.count), now)
	p.asks.refused, p.asks.triedAt = l.why, now
	s.sayUntil(p, reasons.HoldGivenUp, l.until)
	return l.why, l.count
}

func (l *losses) set(why reasons.Reason, waits string, pause time.Duration, now time.Time) {
	again := ""
	if l.count > 1 {
		again = fmt.Sprintf("this is loss %d in a row, so ", l.count)
	}
	why.Text = fmt.Sprintf("%s; %sno plan is made for %s for %v", why.Text, again, waits, pause)
	l.until, l.why = now.Add(pause), why
}

// furtherFrom returns when further victims may be chosen for a preemptor that can run on
// one node only, and the reason given to users until then. It is a loss if victims were
// deleted for it and more are needed.
func (s *Store) furtherFrom(p *pod, now time.Time) (time.Time, reasons.Reason) {
	h, held := s.holds.Of(p.UID)
	if held && h.Binding() && h.Decision != p.asks.losses.room {
		why, n := s.countLoss(p, s.tookNode(p, s.nodes[h.Node]), now)
		p.asks.losses.room, p.asks.began = h.Decision, s.arrivals
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
	pods = slices.DeleteFunc(pods, func(p *pod) bool { return int32(p.arrival-began) <= 0 })
	slices.SortFunc(pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.arrival-began, b.arrival-began), cmp.Compare(a.UID, b.UID))
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
func (s *Store) tookNode(p *pod, n *node) reasons.Reason {
	others := slices.DeleteFunc(slices.Clone(n.pods), func(o *pod) bool { return o == p })
	return roomLost("on node "+n.name, newcomers(others, p.asks.began))
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
				if e.pod != p && e.pod.on != nil {
					others = append(others, e.pod)
				}
			}
		}
	}
	return roomLost("in queue "+s.path(id), newcomers(others, p.asks.began))
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
