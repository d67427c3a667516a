package preemption

import (
	"errors"
	"math"
	"slices"
	"time"
)

// Limiter bounds how often plans are made, and how many pods they disrupt (P2).
//
// A plan visits every node in the scheduling goroutine, so thousands of askers that
// no law allows to preempt would leave no time for other pods. Failed plans are therefore
// paid per node, from an account that refills with time. A plan that makes room is free.
//
//	        a failed plan overdraws the account
//	open ─────────────────────────────────────► throttled
//	  ▲                                            │
//	  └────────────────────────────────────────────┘
//	          the account is full again
//
// While the account is overdrawn no plan is made. Until it is full, pods take turns by
// due time: a few at a time, in the order of the preemption queue, and the next few after
// all of these had theirs. So pods that are first in that order and always refused do not
// block the others.
//
// Assumption: time does not go back by more than the account holds.
type Limiter struct {
	perNode time.Duration // the price of a visited node
	turns   int           // how many pods take turns at a time
	// paid is the time up to which the account is used: later than now is overdrawn, a
	// whole credit before now or earlier is full.
	paid      time.Time
	throttled bool
	// The current round of victims began at that time.
	began   time.Time
	victims int
}

const (
	// perNode is the usual price of a visited node. It is about ten times what a plan
	// takes per node, so a tenth of the time goes into plans that fail.
	perNode = 20 * time.Microsecond
	// Turns is the usual number of pods that take turns. It is large enough for the order
	// of the preemption queue to matter.
	Turns = 16

	credit = time.Second // what the account holds
	// visitsPerCall is how many nodes a plan visits in the time of one filter call for a
	// node.
	visitsPerCall = 20
)

// NewLimiter returns a limiter with a full account and a new round.
func NewLimiter(perNode time.Duration, turns int) Limiter {
	return Limiter{perNode: perNode, turns: turns}
}

// PlanFailed pays for a failed plan and its filter calls.
func (l *Limiter) PlanFailed(nodes, filterCalls int, now time.Time) {
	visits := nodes + filterCalls*visitsPerCall
	l.paid = Latest(l.paid, now.Add(-credit)).Add(time.Duration(visits) * l.perNode)
	l.throttled = l.throttled || l.paid.After(now)
}

// Recover ends the turns if the account is full at that time.
func (l *Limiter) Recover(now time.Time) {
	l.throttled = l.throttled && l.paid.After(now.Add(-credit))
}

// TakesTurns tells whether the account was overdrawn and is not full yet.
func (l *Limiter) TakesTurns() bool { return l.throttled }

// PlansFrom is when a plan may be made: now, or when the account is no longer overdrawn.
func (l *Limiter) PlansFrom(now time.Time) time.Time {
	if !l.throttled {
		return now
	}
	return Latest(now, l.paid)
}

// Room is how many pods may join the order of the preemption queue, given how many are in it.
func (l *Limiter) Room(waiting int) int {
	switch {
	case !l.throttled:
		return math.MaxInt
	case waiting > 0:
		return 0
	}
	return l.turns
}

// VictimsFrom is when n victims may be chosen: now, or when the next round begins. The
// first plan of a round may have more victims than MaxVictims.
func (p *Preemption) VictimsFrom(n int, now time.Time) time.Time {
	l := &p.Limiter
	end := l.began.Add(p.Round)
	if p.MaxVictims <= 0 || !now.Before(end) || l.victims == 0 || l.victims+n <= p.MaxVictims {
		return now
	}
	return end
}

// VictimsChosen counts victims in the current round, or begins the next round.
func (p *Preemption) VictimsChosen(n int, now time.Time) {
	l := &p.Limiter
	if !now.Before(l.began.Add(p.Round)) {
		l.began, l.victims = now, 0
	}
	l.victims += n
}

// Check verifies that only a used account makes pods take turns.
func (l *Limiter) Check() error {
	if l.throttled && l.paid.IsZero() || l.victims < 0 {
		return errors.New("plan limiter: pods take turns, and no plan was paid for")
	}
	return nil
}

// Latest returns the last of at least one time.
func Latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
