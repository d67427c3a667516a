package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// missed are pods that asked for room on the one node they can run on before the
// store had heard of them, or of all others, or that this process leads: the
// scheduler hears of all that by itself, and may be first. Nothing that happens later
// needs to bring them back. So the store does when it has heard of it. (A pod of a
// queue waits behind the gate until the store knows it; only who leads matters to it.)
//
// A pod that is gone before that is forgotten after a while, two minutes at most.
type missed struct {
	recent, older map[types.UID]bool
	turned        time.Time // when recent became older
}

// missedFor is how long a pod is remembered at least.
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

// recall brings a pod back that asked too early. One of a queue that is in its cycle
// still is brought back when that has failed.
func (s *Store) recall(p *pod, now time.Time) {
	asks := p.Foreign && p.mayAskForeign() || p.app != nil && p.RequiredNode != "" && p.state == parked
	if s.started && !s.standby && asks && s.missed.take(p.UID) {
		s.rest(p, now)
	}
}

// recallAll does so with all of them, when the store starts, or leads.
func (s *Store) recallAll(now time.Time) {
	for _, p := range sortedByUID(s.pods) {
		s.recall(p, now)
	}
}
