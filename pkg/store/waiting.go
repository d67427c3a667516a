package store

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Gated counts the pods of queues that are kept out of the scheduler's queue, by reason.
// Pods that back off are one number, whether they hold a node or not. The cost does not
// grow with the cluster.
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
	for g := range s.model.Pending.Groups.All() {
		add(g.Why(objects.PodGroupLabel).Code, g.Blocked())
	}
	add(reasons.NoNodeFits, byClass)
	add(reasons.InOrder, s.model.Pending.Order.Eligible())
	add(reasons.BackingOff, s.model.History.Waits.Total(state.BackingOff))
	return out
}

// waitsAtOnce is the number of queues visited in one hold of the lock.
const waitsAtOnce = 64

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
// The lock is held for waitsAtOnce queues at a time.
func (s *Readers) WaitsFor(leaves []*queues.Queue, now time.Time) []reasons.Code {
	out := make([]reasons.Code, 0, len(leaves))
	for some := range slices.Chunk(leaves, waitsAtOnce) {
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

func (s *core) waitsFor(q *queues.Queue, now time.Time) reasons.Code {
	st := s.model.History.Waits.Of(q.ID)
	eligible := s.model.Pending.Order.EligibleAt(q.ID)
	inOrder := min(eligible, st.In[state.Queued]) + st.In[state.Admitted] + st.In[state.Scheduling]
	byClass := max(0, st.In[state.Queued]-eligible-s.model.Pending.Order.RefusedOf(q.ID))
	stuck := st.In[state.GroupBlocked] + st.In[state.Unschedulable] + st.In[state.BackingOff] + byClass + min(s.model.Pending.Order.OverMaxAbove(q.ID), st.In[state.Queued])
	current := s.model.Pods[s.model.Asking.Current()]
	asked := current != nil && current.App != nil && current.App.Leaf == q.ID
	recent := !now.After(st.Until)
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
		return st.Refused
	case s.model.Asking.Order.EligibleAt(q.ID) > 0:
		return reasons.PreemptionPaced
	}
	return reasons.PreemptionDelayed
}
