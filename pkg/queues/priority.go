package queues

import (
	"math"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Exposed is the priority that a queue shows to its siblings for content of
// priority p: its offset where the queue is a priority fence, else p plus the
// offset, clamped to 32 bits, as in YuniKorn.
func Exposed(p int64, policies config.Policies) int64 {
	if policies.PriorityFence {
		return int64(policies.PriorityOffset)
	}
	return min(max(p+int64(policies.PriorityOffset), math.MinInt32), math.MaxInt32)
}

// maxRank bounds the rank of managed pods: system-critical pods of other
// profiles (2e9 and above) always stay in front.
const maxRank = 1_000_000_000

// Rank is the priority of an ask among all pods of the process, managed or
// not: its priority as root sees it, at most 1e9; or 0 if any queue on the path
// disables priority sorting, because then priority does not lead there.
func Rank(v View, leaf ID, priority int32) int64 {
	p := int64(priority)
	for q := v.Queue(leaf); q != nil; q = v.Queue(q.Parent) {
		if !q.Policies.PrioritySort {
			return 0
		}
		if !q.IsRoot() {
			p = Exposed(p, q.Policies)
		}
	}
	return min(p, maxRank)
}
