package store

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

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

// BeyondQuota returns the quota that keeps a pod that found no node from running even on
// a new node; none if it would run there, or is not known.
func (s *Readers) BeyondQuota(uid types.UID) reasons.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.model.Pods[uid]; p != nil {
		return p.Beyond
	}
	return reasons.Reason{}
}

// whysAtOnce is the number of pods visited in one hold of the lock.
const whysAtOnce = 64

// Whys returns why each pod does not run; none if there is no such pending pod. The lock
// is held for a few pods at a time, so the answers may be of different moments.
func (s *Readers) Whys(uids []types.UID) []reasons.Reason {
	out := make([]reasons.Reason, 0, len(uids))
	for some := range slices.Chunk(uids, whysAtOnce) {
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
