package store

import (
	"math"
	"time"
)

// toil bounds what plans cost that come to nothing. A plan looks at every node in
// the scheduling goroutine, so thousands of pods that ask for what no law lets them
// have would leave no time for others. Such plans are paid for by the node, from
// an account that time fills; one that makes room is free.
//
//	        a plan in vain overdraws the account
//	fresh ─────────────────────────────────────► tired
//	  ▲                                            │
//	  └────────────────────────────────────────────┘
//	          the account is full again
//
// While it is overdrawn nobody is planned for. Until it is full, pods take turns
// as they became due, a few at a time in the order of asking, and the next few when
// all of these had theirs: those that are first in that order and always refused do
// not keep the others waiting.
//
// It assumes that time does not go backwards by more than the account holds.
type toil struct {
	// perNode is what looking at a node in vain costs; turns is how many pods take
	// turns at a time.
	perNode time.Duration
	turns   int
	// paid is the time up to which all is paid for; later than now means overdrawn,
	// a whole credit ago or earlier means full.
	paid  time.Time
	tired bool
}

const (
	// perNode is about ten times what a plan takes for a node: a tenth of the time
	// goes into plans that come to nothing.
	perNode = 20 * time.Microsecond
	// credit is what the account holds.
	credit = time.Second
	// looksPerCall is how many nodes a plan looks at in the time the filters take for
	// one.
	looksPerCall = 20
	// fewTurns are enough for the order of asking to have a say.
	fewTurns = 16
)

// spend pays for a plan that came to nothing, and for what the filters were asked.
func (t *toil) spend(nodes, filterCalls int, now time.Time) {
	looks := nodes + filterCalls*looksPerCall
	t.paid = latest(t.paid, now.Add(-credit)).Add(time.Duration(looks) * t.perNode)
	t.tired = t.tired || t.paid.After(now)
}

// rest tells what time it is.
func (t *toil) rest(now time.Time) {
	t.tired = t.tired && t.paid.After(now.Add(-credit))
}

// until is when a plan may be made: now, unless the account is overdrawn.
func (t *toil) until(now time.Time) time.Time {
	if !t.tired {
		return now
	}
	return latest(now, t.paid)
}

// room is how many pods may join the order of asking where some are waiting.
func (t *toil) room(waiting int) int {
	switch {
	case !t.tired:
		return math.MaxInt
	case waiting > 0:
		return 0
	}
	return t.turns
}
