package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
)

// LostPod is a pod that no longer uses a node as before; see [Store.LostPods].
type LostPod = pending.LostPod

// LostPods returns the pods that a cycle which found no node must check for, oldest
// first; nearly always empty.
func (s *Readers) LostPods(now time.Time) []LostPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Pending.Lost.Pods(now)
}

// Vanished says that a cycle saw these pods as gone. It had their room, so no pod needs
// to be brought back for them again.
func (s *Store) Vanished(pods []LostPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Pending.Lost.Vanished(pods)
}

// ComeBack brings back a pod that found no node while a pod that is gone was still
// counted. It does nothing to a pod in another state than Unschedulable.
func (s *Store) ComeBack(uid types.UID, now time.Time) {
	s.change(now, func() { s.cycle.ComeBack(uid, now) })
}
