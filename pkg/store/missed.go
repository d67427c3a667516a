package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// missed has pods that tried to preempt on the one node they can run on too early: the
// store did not know them yet, had not started, or did not know that this process leads.
// The scheduler gets the same events by its own listeners and may be first. No later
// event would bring such a pod back, so the store does once it is ready. (A pod of a
// queue waits behind the gate until the store knows it; for it only the leadership
// matters.)
//
// A pod that is gone before that is forgotten after two minutes at most.
type missed struct {
	recent, older map[types.UID]bool
	turned        time.Time // when recent was moved to older
}

// missedFor is the shortest time that a pod is remembered.
const missedFor = time.Minute

// note remembers a pod.
func (m *missed) note(uid types.UID, now time.Time) {
	if m.recent == nil || now.Sub(m.turned) >= missedFor {
		m.recent, m.older, m.turned = map[types.UID]bool{}, m.recent, now
	}
	m.recent[uid] = true
}

// take forgets a pod, and tells whether it was remembered.
func (m *missed) take(uid types.UID) bool {
	found := m.recent[uid] || m.older[uid]
	delete(m.recent, uid)
	delete(m.older, uid)
	return found
}

// recall brings back a pod that tried to preempt too early. A pod of a queue that is
// still in its cycle is brought back when that cycle has failed.
func (s *Store) recall(p *pod, now time.Time) {
	asks := p.Foreign && mayAskForeign(p.Pod) || p.app != nil && p.RequiredNode != "" && p.state == parked
	if s.started && !s.standby && asks && s.missed.take(p.UID) {
		s.rest(p, now)
	}
}

// recallAll calls recall for all pods when the store starts or begins to lead.
func (s *Store) recallAll(now time.Time) {
	for _, p := range sortedByUID(s.pods) {
		s.recall(p, now)
	}
}
