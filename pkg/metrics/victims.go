package metrics

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/component-base/metrics"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// victimCounts counts victims by their queues. It is kept here, and not in a vector
// of counters, so that queues that are gone leave no series behind.
type victimCounts struct {
	mu sync.Mutex // guards of
	of map[victimKey]int64
}

// noQueue stands for the queue of a pod that has none.
const noQueue = "none"

// victimKey has the labels of a count.
type victimKey struct{ queue, kind, class string }

func (c *victimCounts) add(k victimKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.queue = cmp.Or(k.queue, noQueue)
	c.of[k]++
}

// collect shows the counts of the queues that are shown, and of all others
// together; what was counted of queues that are gone stays with the others.
func (c *victimCounts) collect(ch chan<- metrics.Metric, s *queues.Snapshot, own map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fold(s)
	others := map[victimKey]int64{}
	for k, n := range c.of {
		if !own[k.queue] && k.queue != noQueue {
			others[victimKey{otherQueues, k.kind, k.class}] += n
			continue
		}
		counter(ch, victimsDesc, float64(n), k.queue, k.kind, k.class)
	}
	for k, n := range others {
		counter(ch, victimsDesc, float64(n), k.queue, k.kind, k.class)
	}
}

// fold puts what was counted of queues that are gone to the others.
func (c *victimCounts) fold(s *queues.Snapshot) {
	for _, k := range slices.Collect(maps.Keys(c.of)) {
		if _, there := s.Find(k.queue); there || k.queue == noQueue || k.queue == otherQueues {
			continue
		}
		c.of[victimKey{otherQueues, k.kind, k.class}] += c.of[k]
		delete(c.of, k)
	}
}
