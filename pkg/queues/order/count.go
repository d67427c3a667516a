package order

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Refused counts the blocked asks, by reason. It visits each queue and each blocked group.
func (x *Index) Refused() map[reasons.Code]int {
	out := map[reasons.Code]int{}
	for _, n := range x.nodes {
		if n != nil {
			for g := range n.blocked {
				out[g.verdict.Reason.Code] += g.asks
			}
		}
	}
	return out
}

// RefusedOf counts the asks of a queue that are blocked by any queue, and those of them that
// are blocked by the max of a queue above it. It visits each group of the queue.
func (x *Index) RefusedOf(id queues.ID) (all, overMaxAbove int) {
	n := x.nodes[id]
	for _, g := range n.known {
		if g.blockedAt == nil {
			continue
		}
		all += g.asks
		if g.blockedAt != n && g.verdict.Reason.Code == reasons.OverMax {
			overMaxAbove += g.asks
		}
	}
	return all, overMaxAbove
}
