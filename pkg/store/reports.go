package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// NextReports returns at most limit reports; the caller writes them. A pod gets one
// report per change of its reason (the code, or the queue and type that refuse, but not
// amounts alone), and repeats from time to time without a change.
func (s *Readers) NextReports(now time.Time, limit int) []output.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.demand.TakeDemand(limit, now) // first, because autoscalers add nodes by it
	for looked := 0; len(out) < limit && looked < 100*limit; looked++ {
		due, ok := s.model.History.Reports.Next(now)
		if !ok {
			break
		}
		if tell, report := s.review(s.model.Pods[due.Pod()], now); tell {
			out = append(out, report)
		}
	}
	s.model.History.End(s.model.Cache.Tree().TreeGeneration(), s.model.Cache.Snapshot, now)
	return out
}

// review decides what to report of a pod now and when to check it again.
func (s *core) review(p *model.Pod, now time.Time) (tell bool, out output.Report) {
	if warn, warning := s.model.History.TakeWarning(p, now); warn {
		return true, warning
	}
	code := s.states.Last(p).Code
	if p.Beyond.None() && (p.State == state.Unschedulable || p.HeldByClass()) || code == reasons.SchedulingGated {
		code = "" // the scheduler itself reports these
	}
	if !s.model.History.Reports.Judge(p.Report, now, history.Waiting{Code: code, Cause: s.states.CauseOf(p), Placed: p.State.HasNode()}) {
		return false, output.Report{}
	}
	out = output.Report{Ref: p.Ref()}
	text := "the pod was let through"
	if code != "" {
		out.Reason = s.states.Explain(p)
		text = out.Reason.Text
	}
	s.model.History.NoteSaid(output.Told, p, text)
	return true, out
}
