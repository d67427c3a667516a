package metrics

import (
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// collector makes the gauges of a store, of one moment per kind, in the
// goroutine that serves the scrape.
type collector struct {
	metrics.BaseStableCollector
	source atomic.Pointer[subject]
}

// subject is a store and how many of its queues have series of their own.
type subject struct {
	*store.Readers
	most int
}

var (
	resourceDesc     = describe("queue_resource")
	applicationsDesc = describe("queue_applications")
	shownDesc        = describe("queues_shown")
	hiddenDesc       = describe("queues_hidden")
	unmetDesc        = describe("queue_unmet_guarantee_seconds_total")
	gatedDesc        = describe("gated_pods")
	holdsDesc        = describe("holds")
	clearDesc        = describe("longest_clear_hold_timestamp_seconds")
	victimsDesc      = describe("preemption_victims_total")
)

// DescribeWithStability serves the registry.
func (*collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{resourceDesc, applicationsDesc, shownDesc, hiddenDesc, unmetDesc, gatedDesc, holdsDesc, clearDesc, victimsDesc} {
		ch <- d
	}
}

// CollectWithStability serves the registry.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	source := c.source.Load()
	if source == nil {
		return
	}
	snapshot := source.Snapshot()
	shown, hidden := choose(snapshot, source.most)
	gauge(ch, shownDesc, float64(len(shown)))
	gauge(ch, hiddenDesc, float64(hidden))
	own := make(map[string]bool, len(shown))
	for _, q := range shown {
		collectQueue(ch, snapshot, q)
		own[q.Path] = true
	}
	unmetTime.collect(ch, own)
	gone.collect(ch, own)
	collectHolds(ch, source.Holds())
	for reason, n := range source.Gated() {
		gauge(ch, gatedDesc, float64(n), string(reason))
	}
}

// collectHolds counts the held nodes once for each pod that holds them, and reports the
// longest wait of those without a victim left. All series are there, so that 0 is seen.
func collectHolds(ch chan<- metrics.Metric, v *reservations.View) {
	kinds := []record.Kind{record.Queue, record.NodeBound}
	states := []string{"clearing", "clear"}
	var count [2][2]int
	var clearSince [2]float64
	for _, h := range v.All() {
		k, s := 0, 0
		if h.NodeBound {
			k = 1
		}
		if h.Clear() {
			s = 1
		}
		count[k][s]++
		if since := h.ClearSince; h.Clear() && !h.Patient() && !since.IsZero() && (clearSince[k] == 0 || unix(since) < clearSince[k]) {
			clearSince[k] = unix(since)
		}
	}
	for k, kind := range kinds {
		gauge(ch, clearDesc, clearSince[k], string(kind))
		for s, state := range states {
			gauge(ch, holdsDesc, float64(count[k][s]), string(kind), state)
		}
	}
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
