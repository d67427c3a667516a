package store

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Gated counts the pods of queues that are kept out of the scheduler's queue, by reason.
// Pods that back off are one number, whether they hold a node or not. It visits queues, groups
// of the order that are blocked, and PodGroups, but no pod.
func (s *Readers) Gated() map[reasons.Code]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[reasons.Code]int{}
	add := func(code reasons.Code, n int) {
		if n > 0 {
			out[code] += n
		}
	}
	for code, n := range s.model.History.Waits.Unplaced() {
		if code == "" { // before Start
			code = s.model.NotStarted().Code
		}
		add(code, n)
	}
	byClass := s.model.History.Waits.Total(state.Queued) - s.model.Pending.Order.Eligible()
	for code, n := range s.model.Pending.Order.Refused() {
		add(code, n)
		byClass -= n
	}
	for g := range s.model.Pending.PodGroups.All() {
		add(g.Why().Code, g.Blocked())
	}
	add(reasons.NoNodeFits, byClass)
	add(reasons.InOrder, s.model.Pending.Order.Eligible())
	add(reasons.BackingOff, s.model.History.Waits.Total(state.BackingOff))
	return out
}

// atOnce is the number of queues, pods or nodes visited in one hold of the lock.
const atOnce = 64

// WaitsFor returns, for each leaf (which is below a guarantee), what its pods wait for
// that preemption could provide; no reason if there are none. It is one reason for the
// queue, that of the pods that are closest to running:
//
//	MakingRoom           a node is held for a pod
//	InOrder              they are next, or will be, to be scheduled or planned for
//	PreemptionDisabled   the partition has no preemption
//	PreemptionPaced      plans for other pods come first, or the round is over
//	PreemptionRefused    the last plan, within the retry interval, failed
//	HoldGivenUp          the last plan could not be carried out, or its room was lost
//	PreemptionDelayed    no pod has waited long enough
//
// The lock is held for atOnce queues at a time.
func (s *Readers) WaitsFor(leaves []*queues.Queue, now time.Time) []reasons.Code {
	out := make([]reasons.Code, 0, len(leaves))
	for some := range slices.Chunk(leaves, atOnce) {
		s.mu.Lock()
		for _, leaf := range some {
			var code reasons.Code
			if q, there := s.model.Cache.Tree().Find(leaf.Path); there { // its ID may belong to another queue by now
				code = s.waitsFor(q, now)
			}
			out = append(out, code)
		}
		s.mu.Unlock()
	}
	return out
}

// waitsFor is WaitsFor for one leaf.
func (s *core) waitsFor(q *queues.Queue, now time.Time) reasons.Code {
	counts := s.model.History.Waits.Of(q.ID)
	in := counts.In
	eligible := s.model.Pending.Order.EligibleAt(q.ID)
	inOrder := min(eligible, in[state.Queued]) + in[state.Admitted] + in[state.Scheduling]
	refused, overMaxAbove := s.model.Pending.Order.RefusedOf(q.ID)
	byClass := max(0, in[state.Queued]-eligible-refused)
	stuck := in[state.GroupBlocked] + in[state.Unschedulable] + in[state.BackingOff] + byClass + min(overMaxAbove, in[state.Queued])
	current := s.model.Pods[s.model.PreemptionQueue.Current()]
	asked := current != nil && current.App != nil && current.App.Leaf == q.ID
	recent := !now.After(counts.Until)
	switch {
	case !q.Arriving.IsZero():
		return reasons.MakingRoom
	case stuck == 0 && inOrder == 0:
		return "" // they are over a quota that only their own pods use
	case stuck == 0, asked:
		return reasons.InOrder
	case !s.model.Cache.Spec.PreemptionEnabled:
		return reasons.PreemptionDisabled
	case recent:
		return counts.Refused
	case s.model.PreemptionQueue.Order.EligibleAt(q.ID) > 0:
		return reasons.PreemptionPaced
	}
	return reasons.PreemptionDelayed
}

// Explain returns why a pending pod does not run; none if it was let through, runs, or is
// not known.
func (s *Readers) Explain(uid types.UID) reasons.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.model.Pods[uid]; known {
		return s.states.Explain(p)
	}
	return reasons.Reason{}
}

// BeyondQuota returns the quota that keeps a pod that found no node, or the rest of its
// PodGroup, from running even on a new node; none if it would run there, or is not known.
func (s *Readers) BeyondQuota(uid types.UID) reasons.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.model.Pods[uid]; p != nil {
		return p.BeyondQuota()
	}
	return reasons.Reason{}
}

// Whys returns why each pod does not run; none if there is no such pending pod. The lock
// is held for a few pods at a time, so the answers may be of different moments.
func (s *Readers) Whys(uids []types.UID) []reasons.Reason {
	out := make([]reasons.Reason, 0, len(uids))
	for some := range slices.Chunk(uids, atOnce) {
		s.mu.Lock()
		for _, uid := range some {
			var why reasons.Reason
			if p := s.model.Pods[uid]; p != nil && !p.Foreign {
				why = s.states.Explain(p)
			}
			out = append(out, why)
		}
		s.mu.Unlock()
	}
	return out
}

// NextReports returns at most limit reports, or ten times as many if they are about the demand; the
// caller writes them. A pod gets one report per change of its reason (the code, or the queue and type
// that refuse, but not amounts alone), and repeats from time to time without a change.
func (s *Store) NextReports(now time.Time, limit int) []output.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.demand.Take(10*limit, now) // first, because autoscalers add nodes by it
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
	if p.BeyondQuota().None() && (p.State == state.Unschedulable || p.HeldByClass()) || code == reasons.SchedulingGated || p.Node != "" {
		code = "" // the scheduler itself reports these, or it runs, which before Start its state does not say
	}
	if !s.model.History.Reports.ShouldReport(p.Report, now, history.Waiting{Code: code, Cause: s.states.CauseOf(p), Placed: p.State.HasNode()}) {
		return false, output.Report{}
	}
	out = output.Report{Ref: p.Ref()}
	text := "the pod was let through"
	if code != "" {
		out.Reason = s.states.Explain(p)
		text = out.Reason.Text
	}
	s.model.History.NoteMessage(output.Told, p, text)
	return true, out
}
