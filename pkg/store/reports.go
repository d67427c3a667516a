package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// The scheduler writes no event and no condition for a gated pod, so this package tells
// users why it waits. The store keeps, for each pod, the last report and the time of the
// next check; the caller takes reports that are due and writes them.

const (
	// soon is how long a pod waits before users are told, for reasons that do not pass by
	// themselves. later is the same for pods that only wait for pods before them.
	soon  = time.Second
	later = 30 * time.Second
	// lookAgain is how often a waiting pod is checked for another reason.
	lookAgain = 10 * time.Second
	// repeatAfter is when an unchanged reason is reported again, because events expire.
	repeatAfter = 30 * time.Minute
	// stale is the age from which a warning about a running pod is dropped: the leader of
	// that time has given it.
	stale = time.Minute
)

// Report is something to tell users about a pod.
type Report struct {
	objects.Ref
	// Reason is why the pod waits; none if it was let through after a reason had been
	// reported.
	Reason reasons.Reason
	// Demand is set if the condition PodScheduled must say this, with Reason. The report
	// then has no other content.
	Demand objects.DemandSaid
	// Warning is true if the pod does not wait for the reason. It does not take back an
	// earlier report.
	Warning bool
}

// report is the state of the reports of one pod.
type report struct {
	pod    *pod
	since  time.Time // when the pod began to wait, was let through, or was last checked with nothing to report
	due    time.Time
	told   reasons.Code // code of the last report; empty if none, or if the last was that the reason is gone
	cause  cause        // cause of the last report
	toldAt time.Time
	warned bool         // the warning about the gang is or was for this pod
	warnOf reasons.Code // code of the warning
	warnAt time.Time    // when the warning became due; zero once it is given
	at     int
}

// Place implements the interface of package ranking.
func (r *report) Place() *int { return &r.at }

// reports orders the pods by their next check.
type reports struct {
	due ranking.Heap[*report]
}

func newReports() reports {
	return reports{due: ranking.New(func(a, b *report) bool {
		if c := a.due.Compare(b.due); c != 0 {
			return c < 0
		}
		return a.pod.UID < b.pod.UID
	})}
}

// expect starts the checks of a pending pod.
func (r *reports) expect(p *pod, now time.Time) {
	p.report = &report{pod: p, since: now, told: p.Told, toldAt: now, at: ranking.Outside}
	r.look(p.report, now.Add(soon))
}

// settle is called when a pod runs: what was reported must be taken back.
func (r *reports) settle(p *pod, now time.Time) {
	switch {
	case p.report == nil:
	case p.report.told == "" && p.report.warnAt.IsZero():
		r.forget(p)
		p.report = nil
	default:
		r.look(p.report, now)
	}
}

// hadItsTurn is called when a pod is admitted: its next wait starts now.
func (r *reports) hadItsTurn(p *pod, now time.Time) {
	if p.report != nil && p.report.told == "" {
		p.report.since = now
	}
}

// warn reports, once per application, that the gang or PodGroup of the pod is ignored.
func (r *reports) warn(p *pod, of reasons.Code, now time.Time) {
	if p.app.warned || p.report.warned {
		p.app.warned = true // also if a changed pod created its application again
		return
	}
	p.app.warned, p.report.warned, p.report.warnOf, p.report.warnAt = true, true, of, now
	r.look(p.report, now)
}

// takeWarning returns the warning that is due for a pod.
func (s *Store) takeWarning(t *report, now time.Time) (warn bool, out Report) {
	p, at := t.pod, t.warnAt
	if at.IsZero() || p.app == nil {
		return false, Report{}
	}
	t.warnAt = time.Time{}
	if p.state == state.Bound && now.Sub(at) >= stale {
		return false, Report{}
	}
	// The next check of its reason is as if there were no warning.
	s.reports.look(t, t.since.Add(soon))
	why := reasons.New(t.warnOf, "application %s: its pods run as ordinary pods, each as soon as it can", p.app.name.id)
	if t.warnOf == reasons.PodGroupIgnored {
		why = reasons.New(t.warnOf, "application %s: pods with label %s run as ordinary pods, each as soon as it can", p.app.name.id, PodGroupLabel)
	}
	return true, Report{Ref: p.Ref(), Warning: true, Reason: why}
}

func (r *reports) forget(p *pod) {
	if p.report != nil {
		r.due.Update(p.report, false)
	}
}

func (r *reports) look(t *report, at time.Time) {
	t.due = at
	r.due.Update(t, true)
}

// NextReports returns at most limit reports; the caller writes them. A pod gets one
// report per change of its reason (the code, or the queue and type that refuse, but not
// amounts alone), and repeats from time to time without a change.
func (s *Store) NextReports(now time.Time, limit int) []Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.takeDemand(limit, now) // first, because autoscalers add nodes by it
	for looked := 0; len(out) < limit && looked < 100*limit; looked++ {
		t, ok := s.reports.due.First()
		if !ok || t.due.After(now) {
			break
		}
		if tell, report := s.review(t, now); tell {
			out = append(out, report)
		}
	}
	s.endEvents(now)
	return out
}

// review decides what to report of a pod now and when to check it again.
func (s *Store) review(t *report, now time.Time) (tell bool, out Report) {
	if warn, warning := s.takeWarning(t, now); warn {
		return true, warning
	}
	p := t.pod
	code := s.code(p)
	if p.beyond.None() && (p.state == state.Unschedulable || p.heldByClass()) || code == reasons.SchedulingGated {
		code = "" // the scheduler itself reports these
	}
	if p.state.HasNode() {
		s.reports.forget(p)
	} else {
		s.reports.look(t, now.Add(lookAgain))
	}
	switch {
	case code == "" && t.told == "":
		t.since = now // also for a pod that found no node, which the scheduler reports
		return false, Report{}
	case code == t.told && now.Sub(t.toldAt) < repeatAfter && s.sameCause(t):
		return false, Report{}
	case code != "" && t.told == "" && now.Sub(t.since) < patience(code):
		s.reports.look(t, t.since.Add(patience(code)))
		return false, Report{}
	}
	t.told, t.toldAt, t.cause = code, now, s.causeOf(p)
	out = Report{Ref: p.Ref()}
	text := "the pod was let through"
	if code != "" {
		out.Reason = s.explain(p)
		text = out.Reason.Text
	}
	s.noteSaid(Told, p, text)
	return true, out
}

// sameCause tells whether a reason with the reported code also has the reported cause.
// For a report of an earlier process only the code is known.
func (s *Store) sameCause(t *report) bool {
	now := s.causeOf(t.pod)
	if t.cause == unknownCause {
		t.cause = now
	}
	return t.cause == now
}

func patience(code reasons.Code) time.Duration {
	switch code {
	case reasons.InOrder, reasons.BackingOff, reasons.Starting:
		return later
	}
	return soon
}

// code is the code of explain, without the text.
func (s *Store) code(p *pod) reasons.Code {
	switch p.state {
	case state.NoQueue:
		if !s.started {
			return s.notStarted().Code
		}
		return p.reason.Code
	case state.Queued:
		if p.heldByClass() {
			return p.stopped().Code
		}
		if v := p.ask.Group().Verdict(); !v.OK() {
			return v.Reason.Code
		}
		return reasons.InOrder
	case state.GroupBlocked:
		return p.mates.Code()
	case state.Unschedulable:
		return p.stopped().Code
	case state.BackingOff:
		if p.asks.Holds() || !p.beyond.None() {
			return p.stopped().Code
		}
		return reasons.BackingOff
	}
	return ""
}
