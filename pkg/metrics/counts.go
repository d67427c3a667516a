package metrics

import (
	"cmp"
	"maps"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
)

const (
	// otherQueues stands for the queues that have no series of their own.
	otherQueues = "other"
	// noQueue stands for the queue of a pod that has none.
	noQueue = "none"
)

// queueCounts is a counter by queue and other labels. It is kept here, and not in a
// vector of counters, so that queues that are gone leave no series behind.
type queueCounts struct {
	desc   *metrics.Desc
	labels int     // how many of a countKey it has
	unit   float64 // what one of a count is

	mu    locks.Mutex // guards the rest
	of    map[countKey]int64
	shown map[countKey]int64 // the series of the last scrape
}

// countKey has the labels of a count; the first is its queue.
type countKey [3]string

var (
	unmetTime = queueCounts{desc: unmetDesc, labels: 2, unit: time.Nanosecond.Seconds(), of: map[countKey]int64{}}
	gone      = queueCounts{desc: victimsDesc, labels: 3, unit: 1, of: map[countKey]int64{}}
)

func (c *queueCounts) add(k countKey, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k[0] = cmp.Or(k[0], noQueue)
	c.of[k] += n
}

// collect shows the counts of the queues with series, and the sum of all others as "other".
// When a queue loses its series, the count that its series showed is dropped, and what was
// counted since the last scrape moves to "other" and stays there. So "other" neither falls
// nor jumps.
func (c *queueCounts) collect(ch chan<- metrics.Metric, own map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, n := range c.of {
		if queue := k[0]; !own[queue] && queue != noQueue && queue != otherQueues {
			delete(c.of, k)
			if n -= c.shown[k]; n > 0 {
				k[0] = otherQueues
				c.of[k] += n
			}
		}
	}
	c.shown = maps.Clone(c.of)
	for k, n := range c.of {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.CounterValue, float64(n)*c.unit, k[:c.labels]...)
	}
}
