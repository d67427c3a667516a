package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Nobody else tells people why a gated pod waits: the scheduler writes neither
// event nor condition for it. So the store keeps, for each pod, what was told
// last and when to look again; somebody outside takes what is due and writes it.

const (
	// soon is how long a pod may wait for a reason that will not pass by itself
	// before people are told; later holds for a mere queue in front.
	soon  = time.Second
	later = 30 * time.Second
	// lookAgain is how often a waiting pod is looked at for another reason.
	lookAgain = 10 * time.Second
	// repeatAfter is when an unchanged reason is told again, because events expire.
	repeatAfter = 30 * time.Minute
	// stale is when a warning about a pod that runs is not news any more: whoever
	// led at the time has given it.
	stale = time.Minute
)

// Report is something to tell people about a pod.
type Report struct {
	Ref
	// Reason is why the pod waits; none when it was let through after a reason
	// had been told.
	Reason reasons.Reason
	// Demand is set where the condition PodScheduled has to say this, for Reason, and
	// nothing else is to be told.
	Demand DemandSaid
	// Warning is true when the pod does not wait for the reason; nothing that was
	// told before is taken back by it.
	Warning bool
}

// report is what was told of one pod.
type report struct {
	pod    *pod
	since  time.Time // when the pod began to wait, was let through, or was looked at with nothing to tell
	due    time.Time
	told   reasons.Code // empty when nothing, or that the reason is gone
	cause  cause        // of what was told
	toldAt time.Time
	warned bool         // it is the pod to warn of its gang, or was
	warnOf reasons.Code // with which code
	warnAt time.Time    // when that became due; zero once it is done
	at     int
}

// Place serves the ranking of reports.
func (r *report) Place() *int { return &r.at }

// reports orders the pods by when to look at them.
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

// expect begins to look at a pending pod.
func (r *reports) expect(p *pod, now time.Time) {
	p.report = &report{pod: p, since: now, told: p.Told, toldAt: now, at: ranking.Outside}
	r.look(p.report, now.Add(soon))
}

// settle is told when a pod runs: what was told of it must be taken back.
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

// hadItsTurn is told that a pod was let through: what it waits for next it has not waited
// for yet.
func (r *reports) hadItsTurn(p *pod, now time.Time) {
	if p.report != nil && p.report.told == "" {
		p.report.since = now
	}
}

// warn has people told, once per application, that the gang or PodGroup of the pod is
// ignored.
func (r *reports) warn(p *pod, of reasons.Code, now time.Time) {
	if p.app.warned || p.report.warned {
		p.app.warned = true // also where a changed pod made its application anew
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
	if p.state == bound && now.Sub(at) >= stale {
		return false, Report{}
	}
	// Whether it waits for something is looked at as if there were no warning.
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

// NextReports returns at most limit things to tell; the caller tells them. A
// pod is told once per change of its reason: the code, or the queue and type that
// refuse, but not for new amounts only. It is told again from time to time while
// nothing changes.
func (s *Store) NextReports(now time.Time, limit int) []Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.takeDemand(limit, now) // autoscalers buy nodes by it, so it comes first
	for looked := 0; len(out) < limit && looked < 100*limit; looked++ {
		t, ok := s.reports.due.First()
		if !ok || t.due.After(now) {
			break
		}
		if tell, report := s.review(t, now); tell {
			out = append(out, report)
		}
	}
	s.endMoment(now)
	return out
}

// review decides what to tell of a pod now and when to look at it again.
func (s *Store) review(t *report, now time.Time) (tell bool, out Report) {
	if warn, warning := s.takeWarning(t, now); warn {
		return true, warning
	}
	p := t.pod
	code := s.code(p)
	if p.beyond.None() && (p.state == parked && !p.kept || p.heldByTwin()) || code == reasons.SchedulingGated {
		code = "" // the scheduler itself tells people about these
	}
	if p.state.allocated() {
		s.reports.forget(p)
	} else {
		s.reports.look(t, now.Add(lookAgain))
	}
	switch {
	case code == "" && t.told == "":
		t.since = now // the same for one that found no node, which others tell
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

// sameCause tells whether a reason with the code that was told is the one that
// was told. Of a reason that an earlier process told only the code is known.
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

// code is the code of explain, without the sentence.
func (s *Store) code(p *pod) reasons.Code {
	switch p.state {
	case unplaced:
		if !s.started {
			return s.notStarted().Code
		}
		return p.reason.Code
	case waiting:
		if p.heldByTwin() {
			return p.stopped().Code
		}
		if v := p.ask.Group().Verdict(); !v.OK() {
			return v.Reason.Code
		}
		return reasons.InOrder
	case parked:
		if p.kept {
			return p.mates.code()
		}
		return p.stopped().Code
	case cooling:
		if p.asks.holds || !p.beyond.None() {
			return p.stopped().Code
		}
		return reasons.BackingOff
	}
	return ""
}
