package order

import (
	"maps"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Refused counts the blocked asks, by reason.
func (x *Index) Refused() map[reasons.Code]int { return maps.Clone(x.refused) }

// OverMaxAbove counts the asks of a queue that are blocked by the max of a queue above
// it. It visits each group of the queue.
func (x *Index) OverMaxAbove(id queues.ID) int {
	n, asks := x.nodes[id], 0
	for _, g := range n.known {
		if g.blockedAt != nil && g.blockedAt != n && g.verdict.Reason.Code == reasons.OverMax {
			asks += g.asks
		}
	}
	return asks
}

// RefusedOf counts the asks of a queue that are blocked by any queue. It visits each
// group of the queue.
func (x *Index) RefusedOf(id queues.ID) int {
	asks := 0
	for _, g := range x.nodes[id].known {
		if g.blockedAt != nil {
			asks += g.asks
		}
	}
	return asks
}
