package preemption

import (
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Losses counts the holds in a row that an asker, or a PodGroup that has not started,
// has lost.
//
// A hold is lost if it had a cost and its asker is not bound: pods were disrupted for
// it, the node was kept free until the time-out, or the plan was not carried out, because
// a call failed or the check before the deletes refused it. After each loss no plan is made
// for the asker for the retry interval, doubled with each further loss in a row.
// Without this pause, an asker that competes with another scheduler would empty a node,
// lose the room, and go on to the next node at once.
//
//	hold lost ──► pause: retry interval ──► plan ──► hold lost ──► pause: twice as long ──► ...
//	                                          │
//	                                          └──► bound: the count ends with the asker
//
// The pods of a PodGroup that has not started share one count. For a node-bound pod, the node stays
// held, and the pause applies to further victims; if its hold ended, it does not hold the node
// again before the pause ends.
//
// A plan is undone if its check found room without a victim, or if the asker's own PodGroup is
// the cause: it has too few pods, pods that it lacks are in a pause or found no room, or pods of it
// took the room or gave up their holds. The pause is then short at first: firstPause, doubled for
// each further undone plan. It is not zero: a PodGroup that cannot start could undo every plan.
type Losses struct {
	Count  int
	Undone int            // plans that were undone
	Until  time.Time      // no plan before this time
	Why    reasons.Reason // the reason given to users until then
	lost   time.Time      // the end of the pause after the last loss
	// LostDecision is set for a node-bound asker that holds its node: the ID of the last
	// decision that made room and lost it. The hold goes on, and the loss is counted once.
	LostDecision string
	// PlacedAt is when the asker was bound to the held node on which room was made.
	PlacedAt time.Time
}

// A pause is doubled at most mostDoublings times. It is at most longestPause, or the
// retry interval if that is longer.
const (
	mostDoublings = 6
	longestPause  = time.Hour
	firstPause    = 250 * time.Millisecond // after a plan that was undone
)

// Pause is how long no plan is made after the n-th loss in a row; n is at least 1.
func (o *Options) Pause(n int) time.Duration {
	return min(o.RetryInterval<<min(n-1, mostDoublings), max(o.RetryInterval, longestPause))
}

// ShortPause is how long no plan is made after the n-th plan that was undone; n is at
// least 1.
func (o *Options) ShortPause(n int) time.Duration {
	return min(firstPause<<min(n-1, 30), o.Pause(n))
}

// Lose counts a loss and sets the pause. waits names what no plan is made for. A loss
// during the pause of a loss belongs to an earlier plan and is not counted again.
func (l *Losses) Lose(why reasons.Reason, waits string, o *Options, now time.Time) {
	if !now.Before(l.lost) {
		l.Count++
	}
	again, pause := "", o.Pause(l.Count)
	if l.Count > 1 {
		again = fmt.Sprintf("this is loss %d in a row, so ", l.Count)
	}
	l.setPause(why, again, waits, pause, now)
	l.lost = l.Until
}

// Undo counts a plan that was undone and sets the pause. One that is undone during any
// pause belongs to an earlier plan and changes nothing.
func (l *Losses) Undo(why reasons.Reason, waits string, o *Options, now time.Time) {
	if now.Before(l.Until) {
		return
	}
	l.Undone++
	l.setPause(why, "", waits, o.ShortPause(l.Undone), now)
}

func (l *Losses) setPause(why reasons.Reason, again, waits string, length time.Duration, now time.Time) {
	why.Text = fmt.Sprintf("%s; %sno plan is made for %s for %v", why.Text, again, waits, length)
	l.Until, l.Why = now.Add(length), why
}

// Inherited returns the losses for a pod that replaces one with these losses. Plans that
// were undone are not passed on.
func (l *Losses) Inherited() Losses {
	return Losses{Count: l.Count, Until: l.Until, Why: l.Why, lost: l.lost}
}

// IsEmpty tells whether there is nothing to remember.
func (l *Losses) IsEmpty() bool { return l.Count == 0 && l.Undone == 0 && l.PlacedAt.IsZero() }
