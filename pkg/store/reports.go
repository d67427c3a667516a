package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// The scheduler writes no event and no condition for a gated pod, so this package tells
// users why it waits. history.Reports decides what is told and when; the caller of
// NextReports writes it.

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

// warn reports, once per application, that the gang or PodGroup of the pod is ignored. A
// changed pod may create its application again; it is not warned of twice.
func (h *storeHistory) warn(p *pod, of reasons.Code, now time.Time) {
	if !p.app.warned {
		p.app.warned = true
		h.reports.Warn(p.report, of, now)
	}
}

// takeWarning returns the warning that is due for a pod.
func (h *storeHistory) takeWarning(p *pod, now time.Time) (warn bool, out Report) {
	if p.app == nil {
		return false, Report{}
	}
	of := h.reports.TakeWarning(p.report, p.state == state.Bound, now)
	var why reasons.Reason
	switch of {
	case "":
		return false, Report{}
	case reasons.PodGroupIgnored:
		why = reasons.New(of, "application %s: pods with label %s run as ordinary pods, each as soon as it can", p.app.Name.ID, PodGroupLabel)
	default:
		why = reasons.New(of, "application %s: its pods run as ordinary pods, each as soon as it can", p.app.Name.ID)
	}
	return true, Report{Ref: p.Ref(), Warning: true, Reason: why}
}

// NextReports returns at most limit reports; the caller writes them. A pod gets one
// report per change of its reason (the code, or the queue and type that refuse, but not
// amounts alone), and repeats from time to time without a change.
func (s *Store) NextReports(now time.Time, limit int) []Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.takeDemand(limit, now) // first, because autoscalers add nodes by it
	for looked := 0; len(out) < limit && looked < 100*limit; looked++ {
		due, ok := s.history.reports.Next(now)
		if !ok {
			break
		}
		if tell, report := s.review(s.pods[due.Pod()], now); tell {
			out = append(out, report)
		}
	}
	s.history.end(s.cache.Tree().TreeGeneration(), s.cache.Snapshot, now)
	return out
}

// review decides what to report of a pod now and when to check it again.
func (s *Store) review(p *pod, now time.Time) (tell bool, out Report) {
	if warn, warning := s.history.takeWarning(p, now); warn {
		return true, warning
	}
	code := s.code(p)
	if p.beyond.None() && (p.state == state.Unschedulable || p.heldByClass()) || code == reasons.SchedulingGated {
		code = "" // the scheduler itself reports these
	}
	if !s.history.reports.Judge(p.report, now, history.Waiting{Code: code, Cause: s.causeOf(p), Placed: p.state.HasNode()}) {
		return false, Report{}
	}
	out = Report{Ref: p.Ref()}
	text := "the pod was let through"
	if code != "" {
		out.Reason = s.explain(p)
		text = out.Reason.Text
	}
	s.history.noteSaid(Told, p, text)
	return true, out
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

// causeOf is the cause of the reason that explain returns for the pod. It uses the last
// verdict and does not check quotas again.
func (s *Store) causeOf(p *pod) history.Cause {
	switch p.state {
	case state.NoQueue:
		if !s.started {
			return history.CauseOfSentence(s.notStarted().Text)
		}
		return history.CauseOfSentence(p.reason.Text)
	case state.Queued:
		if p.heldByClass() { // it has no group in the order, and no report
			return history.CauseOfSentence("")
		}
		if v := p.ask.Group().Verdict(); !v.OK() {
			return history.CauseOfVerdict(v.Reason.Text)
		}
	}
	return history.CauseOfSentence("")
}
