package history

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

const (
	// Soon is how long a pod waits before users are told, for reasons that do not pass by
	// themselves. later is the same for reasons that pass by themselves: InOrder, BackingOff,
	// Starting.
	Soon  = time.Second
	later = 30 * time.Second
	// lookAgain is how often a waiting pod is checked for another reason.
	lookAgain = 10 * time.Second
	// repeatAfter is when an unchanged reason is reported again, because events expire.
	repeatAfter = 30 * time.Minute
	// stale is the age from which a warning about a running pod is dropped: the leader of
	// that time has given it.
	stale = time.Minute
)

// Waiting is why a pod waits at a moment.
type Waiting struct {
	// Code is the code of the reason; empty for a pod that does not wait, or for a reason
	// that the scheduler itself reports. Cause distinguishes reasons of this code.
	Code  reasons.Code
	Cause Cause
	// Placed is true for a pod that has a node. It needs no further check.
	Placed bool
}

// Report is what users were told of one pod, and when it is checked again.
type Report struct {
	pod    types.UID
	since  time.Time // when the pod began to wait, was let through, or was last checked without a reason
	due    time.Time
	told   reasons.Code // code of the last report; empty if none, or if the last was that the reason is gone
	cause  Cause        // cause of the last report
	toldAt time.Time
	warnOf reasons.Code // code of the warning that is or was for this pod; empty for none
	warnAt time.Time    // when the warning became due; zero once it is taken
	at     int
}

// Place implements the interface of package ranking.
func (r *Report) Place() *int { return &r.at }

// Pod is the pod that the report is about.
func (r *Report) Pod() types.UID { return r.pod }

// Reports decides what users are told of waiting pods and when: one report for each change
// of the reason (the code or the cause, but not amounts alone), and a repetition from time
// to time without a change. Make one with NewReports.
type Reports struct{ due ranking.Heap[*Report] }

// NewReports returns Reports without pods.
func NewReports() Reports {
	return Reports{due: ranking.New(func(a, b *Report) bool {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.pod, b.pod)) < 0
	})}
}

// Expect starts the checks of a pending pod; told is the code that an earlier process
// reported last, empty for none.
func (r *Reports) Expect(pod types.UID, told reasons.Code, now time.Time) *Report {
	x := &Report{pod: pod, since: now, told: told, toldAt: now, at: ranking.Outside}
	r.Look(x, now.Add(Soon))
	return x
}

// Placed handles a pod that runs. It returns true, and forgets the pod, if users were told
// nothing and no warning is due. Otherwise ShouldReport takes the report back at the next
// check, which is now.
func (r *Reports) Placed(x *Report, now time.Time) (over bool) {
	if x.told == "" && x.warnAt.IsZero() {
		r.Forget(x)
		return true
	}
	r.Look(x, now)
	return false
}

// Admitted is called when a pod is admitted: its next wait starts now. It does nothing
// for nil.
func (r *Reports) Admitted(x *Report, now time.Time) {
	if x != nil && x.told == "" {
		x.since = now
	}
}

// Forget ends the checks of a pod that is gone. It does nothing for nil.
func (r *Reports) Forget(x *Report) {
	if x != nil {
		r.due.Update(x, false)
	}
}

// Look checks a pod again at a time. It does nothing for nil.
func (r *Reports) Look(x *Report, at time.Time) {
	if x != nil {
		x.due = at
		r.due.Update(x, true)
	}
}

// Warn makes a warning due, once per pod.
func (r *Reports) Warn(x *Report, of reasons.Code, now time.Time) {
	if x.warnOf == "" {
		x.warnOf, x.warnAt = of, now
		r.Look(x, now)
	}
}

// TakeWarning takes the warning that is due for a pod; empty if there is none. A warning
// about a bound pod is dropped if it is old.
func (r *Reports) TakeWarning(x *Report, bound bool, now time.Time) reasons.Code {
	at := x.warnAt
	if at.IsZero() {
		return ""
	}
	if x.warnAt = (time.Time{}); bound && now.Sub(at) >= stale {
		return ""
	}
	r.Look(x, x.since.Add(Soon)) // the next check is as if there were no warning
	return x.warnOf
}

// Next returns the pod whose check is due first; false if none is due.
func (r *Reports) Next(now time.Time) (*Report, bool) {
	x, ok := r.due.First()
	if !ok || x.due.After(now) {
		return nil, false
	}
	return x, true
}

// ShouldReport tells whether users are told now why a pod waits, or with an empty code
// that it no longer waits. It also sets the next check.
func (r *Reports) ShouldReport(x *Report, now time.Time, w Waiting) bool {
	if w.Placed {
		r.Forget(x)
	} else {
		r.Look(x, now.Add(lookAgain))
	}
	if w.Code == "" {
		x.since = now // also for a pod that found no node, which the scheduler reports
	}
	switch {
	case w.Code == "" && x.told == "":
		return false
	case w.Code == x.told && now.Sub(x.toldAt) < repeatAfter && x.sameCause(w.Cause):
		return false
	case w.Code != "" && x.told == "" && now.Sub(x.since) < patience(w.Code):
		r.Look(x, x.since.Add(patience(w.Code)))
		return false
	}
	x.told, x.toldAt, x.cause = w.Code, now, w.Cause
	return true
}

// sameCause tells whether a reason with the reported code also has the reported cause.
// For a report of an earlier process only the code is known.
func (r *Report) sameCause(now Cause) bool {
	if r.cause == UnknownCause {
		r.cause = now
	}
	return r.cause == now
}

// patience is how long a pod waits for a reason before users are told.
func patience(code reasons.Code) time.Duration {
	switch code {
	case reasons.InOrder, reasons.BackingOff, reasons.Starting:
		return later
	}
	return Soon
}

// Check verifies the order of the checks.
func (r *Reports) Check() error { return r.due.Check() }
