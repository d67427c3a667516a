package holds

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// HoldsDue is when the first hold times out; zero for never. On a standby no hold times
// out: that is left to the leader.
func (x *Holds) HoldsDue() time.Time {
	if x.m.Standby {
		return time.Time{}
	}
	return x.m.Preemption.Ledger.Due(x.m.Preemption.HoldTimeout, x.dueFrom())
}

// Until is when each hold times out, also on a standby; see [reservations.Ledger.Until].
func (x *Holds) Until() map[types.UID]time.Time {
	return x.m.Preemption.Ledger.Until(x.m.Preemption.HoldTimeout, x.dueFrom())
}

// dueFrom returns the start of each hold's time-out. It is at most LatestFrom: one time-out
// after the hold began, and StartDelay more for a node-bound pod, or before, as noteOwn says.
// Otherwise such a pod could choose further victims again and again when others take the room.
//
// The holds of a PodGroup that has not started share one time-out, which counts from the
// latest of them. With separate ones, the first member would lose its node while room is
// made for the last one. Also, while one member holds a node, another member that lost its
// hold would get that node again, because it fits beside it, and the group could keep the
// node from all others without a start. For the same reason a loss counts for the whole
// group. None of the holds begins its time-out later than the first of them may: members
// that are made again and again, each with a victim of its own, would keep a node for ever.
//
// A pod in Permit keeps its hold as long as it is there. It does not extend the holds of
// the other members: members that come to Permit in turns would keep a node for ever.
func (x *Holds) dueFrom() reservations.From {
	known := map[*model.PodGroup]time.Time{} // zero: no time-out
	return func(asker types.UID, own time.Time) (time.Time, bool) {
		p := x.m.Pods[asker]
		switch {
		case p.State.HasNode():
			return time.Time{}, false
		case p.RequiredNode != "":
			h, _ := x.m.Preemption.Ledger.Of(asker)
			if delayed := p.Asker.HeldFrom.Add(x.m.Preemption.NodeBoundParams.StartDelay); len(h.Chosen) == 0 {
				// Before that, no victim may be chosen.
				if h.LatestFrom.Before(delayed) {
					delayed = h.LatestFrom
				}
				own = preemption.Latest(own, delayed)
			}
			return own, true
		case !p.GroupIncomplete():
			return own, true
		}
		from, ok := known[p.PodGroup]
		if !ok {
			from, _ = x.groupFrom(p.PodGroup)
			known[p.PodGroup] = from
		}
		return preemption.Latest(own, from), !from.IsZero()
	}
}

// groupFrom returns the start of the time-out of the holds of a PodGroup; zero without one.
// It is bounded by that of the first of them.
func (x *Holds) groupFrom(g *model.PodGroup) (from time.Time, bounded bool) {
	var bound time.Time
	for _, m := range g.Members() {
		h, holds := x.m.Preemption.Ledger.Of(m.UID)
		if !holds || m.RequiredNode != "" {
			continue
		}
		from = preemption.Latest(from, h.TimeFrom())
		if bound.IsZero() || h.LatestFrom.Before(bound) {
			bound = h.LatestFrom
		}
	}
	if bound.Before(from) {
		return bound, true
	}
	return from, from.Equal(bound)
}

// TimeOutHolds ends the holds that were not used in time.
func (x *Holds) TimeOutHolds(now time.Time) {
	if due := x.HoldsDue(); due.IsZero() || due.After(now) {
		return
	}
	for _, h := range x.m.Preemption.Ledger.Overdue(now, x.m.Preemption.HoldTimeout, x.dueFrom()) {
		p := x.m.Pods[h.Asker]
		if p.RequiredNode != "" || !p.GroupIncomplete() {
			x.EndHold(p, reservations.TimedOut, x.timedOut(&h), now)
			continue
		}
		_, bounded := x.groupFrom(p.PodGroup)
		why := x.groupTimedOut(p.PodGroup, bounded, &h)
		for _, m := range p.PodGroup.Members() {
			if m.RequiredNode == "" && !m.State.HasNode() {
				x.EndHold(m, reservations.TimedOut, why, now)
			}
		}
	}
	x.m.Preemption.Ledger.TimesChange()
}

// groupTimedOut is the reason of the holds of a PodGroup that did not start in time.
func (x *Holds) groupTimedOut(g *model.PodGroup, bounded bool, h *reservations.Hold) reasons.Reason {
	switch timeout := x.m.Preemption.HoldTimeout; {
	case bounded:
		return reasons.New(reasons.HoldTimedOut, "PodGroup %s did not start within %v of when the first of its pods held a node", g.Name(), 2*timeout)
	case h.Clear():
		return reasons.New(reasons.HoldTimedOut, "PodGroup %s did not start within %v of when the last node that its pods hold was clear", g.Name(), timeout)
	}
	return x.timedOut(h)
}

// timedOut is the reason of a hold that its pod did not use in time.
func (x *Holds) timedOut(h *reservations.Hold) reasons.Reason {
	timeout := x.m.Preemption.HoldTimeout
	switch from := h.TimeFrom(); {
	case h.Since.After(from.Add(timeout)):
		return reasons.New(reasons.HoldTimedOut, "node %s was held and the pod did not start there; the claim on the pod says since %s, which is in the future",
			h.Node, h.Since.UTC().Format(time.RFC3339))
	case from.Equal(h.LatestFrom):
		return reasons.New(reasons.HoldTimedOut, "node %s was held for %v and the pod did not start there", h.Node, from.Add(timeout).Sub(h.Since))
	case !h.Clear() && len(h.Chosen) > 0:
		names, _ := x.list(h.Awaited, h.Node)
		return reasons.New(reasons.HoldTimedOut, "node %s was held, and pods that the pod waits for are still there %v after the request to stop: %s",
			h.Node, timeout, names)
	case len(h.Chosen) == 0 && (h.Patient() || !h.Clear() || !h.Committed()):
		return reasons.New(reasons.HoldTimedOut, "node %s was held for %v and no pod was chosen to make room there", h.Node, timeout)
	}
	return reasons.New(reasons.HoldTimedOut, "node %s was clear for %v and the pod did not start there", h.Node, timeout)
}
