package store

import (
	"math"
	"time"
)

// planBudget bounds the cost of plans that fail. A plan visits every node in the scheduling
// goroutine, so thousands of preemptors that no law allows to preempt would leave no time
// for other pods. Failed plans are paid per node, from an account that refills with time;
// a plan that makes room is free.
//
//	        a failed plan overdraws the account
//	fresh ─────────────────────────────────────► tired
//	  ▲                                            │
//	  └────────────────────────────────────────────┘
//	          the account is full again
//
// While the account is overdrawn no plan is made. Until it is full, pods take turns by
// due time: a few at a time, in the order of asking, and the next few after all of these
// had theirs. So pods that are first in that order and always refused do not block the
// others.
//
// Assumption: time does not go back by more than the account holds.
type planBudget struct {
	// perNode is the price of a visited node; turns is how many pods take turns at a
	// time.
	perNode time.Duration
	turns   int
	// paid is the time up to which the account is used: later than now is overdrawn, a
	// whole credit before now or earlier is full.
	paid  time.Time
	tired bool
}

const (
	// perNode is about ten times what a plan takes per node, so a tenth of the time goes
	// into plans that fail.
	perNode = 20 * time.Microsecond
	// credit is what the account holds.
	credit = time.Second
	// looksPerCall is how many nodes a plan visits in the time of one filter call for a
	// node.
	looksPerCall = 20
	// fewTurns is large enough for the order of asking to matter.
	fewTurns = 16
)

// spend pays for a failed plan and its filter calls.
func (t *planBudget) spend(nodes, filterCalls int, now time.Time) {
	looks := nodes + filterCalls*looksPerCall
	t.paid = latest(t.paid, now.Add(-credit)).Add(time.Duration(looks) * t.perNode)
	t.tired = t.tired || t.paid.After(now)
}

// rest updates tired for the current time.
func (t *planBudget) rest(now time.Time) {
	t.tired = t.tired && t.paid.After(now.Add(-credit))
}

// until is when a plan may be made: now, unless the account is overdrawn.
func (t *planBudget) until(now time.Time) time.Time {
	if !t.tired {
		return now
	}
	return latest(now, t.paid)
}

// room is how many pods may join the order of asking, given how many are in it.
func (t *planBudget) room(waiting int) int {
	switch {
	case !t.tired:
		return math.MaxInt
	case waiting > 0:
		return 0
	}
	return t.turns
}
