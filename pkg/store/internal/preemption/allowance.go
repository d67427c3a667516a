package preemption

import "time"

// nodeOf is a node as the pods of a namespace use it.
type nodeOf struct{ node, namespace string }

// allowance is how long the pods of a namespace used something on a node, all together, in
// the present period. A period begins with the first use after the one before.
type allowance struct {
	usersNow   int           // pods that use it now
	inUseSince time.Time     // if a pod uses it
	usedBefore time.Duration // before inUseSince, in the period
	periodEnds time.Time     // all of it is granted again then
}

// isOver tells whether no period is under way. One that is used is not over.
func (a *allowance) isOver(now time.Time) bool { return a.usersNow == 0 && !now.Before(a.periodEnds) }

// beginPeriod begins a period if none is under way.
func (a *allowance) beginPeriod(every time.Duration, now time.Time) {
	if a.isOver(now) {
		a.usedBefore, a.periodEnds = 0, now.Add(every)
	}
}

// enter notes one more user.
func (a *allowance) enter(now time.Time) {
	if a.usersNow == 0 {
		a.inUseSince = now
	}
	a.usersNow++
}

// leave notes one user less.
func (a *allowance) leave(now time.Time) {
	a.usedBefore = a.spent(now)
	a.usersNow--
	a.inUseSince = now
}

// spent is how long it was used in the present period, until now.
func (a *allowance) spent(now time.Time) time.Duration {
	if a.usersNow == 0 {
		return a.usedBefore
	}
	return a.usedBefore + max(now.Sub(a.inUseSince), 0)
}
