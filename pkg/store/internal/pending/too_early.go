package pending

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TooEarly has node-bound pods that tried to preempt too early: the store did not know them yet,
// had not started, or did not know that this process leads. The scheduler gets the same events by
// its own listeners and may be first. No later event would bring such a pod back, so the store does
// once it is ready. (A pod of a queue waits behind the gate until the store knows it; for it only
// the leadership matters.)
//
// A pod that is gone before that is forgotten after two minutes at most, while others are
// noted.
type TooEarly struct {
	recent, older map[types.UID]bool
	turned        time.Time // when recent was moved to older
}

// tooEarlyFor is the shortest time that a pod is remembered.
const tooEarlyFor = time.Minute

// Note remembers a pod.
func (m *TooEarly) Note(uid types.UID, now time.Time) {
	if m.recent == nil || now.Sub(m.turned) >= tooEarlyFor {
		m.recent, m.older, m.turned = map[types.UID]bool{}, m.recent, now
	}
	m.recent[uid] = true
}

// UIDs returns the pods that are remembered, in the order of their UIDs.
func (m *TooEarly) UIDs() []types.UID {
	uids := slices.AppendSeq(slices.Collect(maps.Keys(m.older)), maps.Keys(m.recent))
	slices.Sort(uids)
	return slices.Compact(uids)
}

// Take forgets a pod, and tells whether it was remembered.
func (m *TooEarly) Take(uid types.UID) bool {
	found := m.recent[uid] || m.older[uid]
	delete(m.recent, uid)
	delete(m.older, uid)
	return found
}
