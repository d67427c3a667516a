package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// missed are pods that asked for room on the one node they can run on before the
// store had heard of them, or of all others: the scheduler hears of a pod by itself,
// and may be first. One of a queue waits behind the gate until the store knows it;
// of no queue are tried at once, and nothing that happens later needs to bring
// them back. So the store does when it has heard of them.
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

// recall brings a pod back that asked too early.
func (s *Store) recall(p *pod, now time.Time) {
	if s.started && p.Foreign && p.mayAskForeign() && s.missed.take(p.UID) {
		s.rest(p, now)
	}
}

// recallAll does so with all of them, when the store starts.
func (s *Store) recallAll(now time.Time) {
	for _, p := range sortedByUID(s.pods) {
		s.recall(p, now)
	}
}
