package store

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
)

// Gate tells whether a pod may enter the scheduler's queue. The scheduler calls it each
// time it would put the pod there, so a call for an unschedulable pod means that an event may
// help that pod. The reason is none if the pod may enter. Otherwise it is brief, because
// the scheduler discards it.
//
// Pods of no queue pass the gate, with one exception: a node-bound pod that waits for victims on
// its node is not tried whenever a pod ends on some other node.
func (s *Store) Gate(uid types.UID, now time.Time) reasons.Reason {
	s.mu.Lock()
	why, changed := s.cycle.Gate(uid, now)
	if changed {
		s.endChange(now)
	} else {
		s.mu.Unlock()
	}
	return why
}

// CheckQuota is the quota check of a pending pod at the beginning of its cycle: max, and
// limits of users and groups. It refuses a pod that is not known or has no queue.
func (s *Store) CheckQuota(uid types.UID) queues.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cycle.CheckQuota(uid)
}

// QuotaRefused says that a cycle of the pod ended with a verdict of CheckQuota or Assume against
// it. The pod waits, out of the order until the queue that refused it has more room. In a cycle for
// a plan, the call before the plan changes nothing, and the one after it ends the cycle.
func (s *Store) QuotaRefused(uid types.UID, now time.Time) {
	s.change(now, func() { s.cycle.QuotaRefused(uid, now) })
}

// NoNode says that a cycle of the pod found no node. class identifies its equivalence class: it is a
// hash of what the filters read of the pod; "" for none.
func (s *Store) NoNode(uid types.UID, class string, why reasons.Reason, now time.Time) {
	s.change(now, func() { s.cycle.NoNode(uid, class, why, now) })
}

// Defer says that another plugin refused to try the pod now. The store does not know
// which event that plugin waits for, so the pod backs off and comes back by itself. With
// SchedulingGated the scheduler's queue knows the event, and calls Gate then.
func (s *Store) Defer(uid types.UID, why reasons.Reason, now time.Time) {
	s.change(now, func() { s.cycle.Defer(uid, why, now) })
}

// NoSnapshot stands for the number of pods on a node where no snapshot was taken.
const NoSnapshot = math.MaxInt

// Assume charges a pod as allocated on a node, or returns the reason not to. This verdict
// is on the live state and is the binding one. seen is how many pods the cycle's snapshot
// has on the node; if the store counts more, it has not seen yet that pods ended.
// [Store.TakeActivations] gives the pod's slot to the next pod, because the scheduling
// cycle waits for Assume.
func (s *Store) Assume(uid types.UID, node string, seen int, now time.Time) queues.Verdict {
	s.mu.Lock()
	defer func() {
		s.model.Pending.NoteUnfilled(now)
		s.endChangeUnfilled(now)
	}()
	return s.cycle.Assume(uid, node, seen, now)
}

// Forget takes back Assume: the pod is not bound. It changes nothing for a pod that is
// not assumed, so it may be called late and more than once.
func (s *Store) Forget(uid types.UID, now time.Time) {
	s.change(now, func() { s.cycle.Forget(uid, now) })
}

// FreedPod is a pod that no longer uses a node as before; see [Readers.FreedPods].
type FreedPod = pending.FreedPod

// FreedPods returns the pods that a cycle which found no node must check for, oldest
// first; nearly always empty.
func (s *Readers) FreedPods(now time.Time) []FreedPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Pending.FreedUnseen.Pods(now)
}

// Vanished says that a cycle saw these pods as gone. It had their room, so no pod needs
// to be brought back for them again.
func (s *Store) Vanished(pods []FreedPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Pending.FreedUnseen.Vanished(pods)
}

// ComeBack brings back a pod that found no node while a pod that is gone was still
// counted. It does nothing to a pod in another state than Unschedulable.
func (s *Store) ComeBack(uid types.UID, now time.Time) {
	s.change(now, func() { s.cycle.ComeBack(uid, now) })
}
