package preemption

import "time"

// nodeOf is a node as the pods of a namespace use it.
type nodeOf struct{ node, namespace string }

// allowance is how long the pods of a namespace used something on a node, all together, in
// the present period. A period begins with the first use after the one before.
type allowance struct {
	users      int           // pods that use it now
	since      time.Time     // since when, if any
	used       time.Duration // before that
	periodEnds time.Time     // all of it is granted again then
}

// renew begins a period if none is under way. One that is used is not over.
func (a *allowance) renew(every time.Duration, now time.Time) {
	if a.users == 0 && !now.Before(a.periodEnds) {
		a.used, a.periodEnds = 0, now.Add(every)
	}
}

// enter notes one more user.
func (a *allowance) enter(now time.Time) {
	if a.users == 0 {
		a.since = now
	}
	a.users++
}

// leave notes one user less.
func (a *allowance) leave(now time.Time) {
	a.used = a.spent(now)
	a.users--
	a.since = now
}

// spent is how long it was used in the present period, until now.
func (a *allowance) spent(now time.Time) time.Duration {
	if a.users == 0 {
		return a.used
	}
	return a.used + max(now.Sub(a.since), 0)
}
