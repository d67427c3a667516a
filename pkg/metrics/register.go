package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	registerOnce sync.Once
	cluster      = &collector{}
	// From a second to about an hour.
	timeToGuaranteeSeconds = newHistogram(timeToGuarantee, metrics.ExponentialBuckets(1, 2, 13))
)

// Register makes the metrics known; it may be called more than once.
func Register() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(reloadSuccess, reloadTimestamp, reloadFailures, timeToGuaranteeSeconds, decided, rejected, held, lostHolds, planned, lost, drifts)
		legacyregistry.CustomMustRegister(cluster)
	})
}

// Follow has the gauges show a source from now on, and so many of its queues by
// name. There is one scheduler in a process, so the last one counts; nil shows
// nothing.
func Follow(s Source, most int) { cluster.follow(s, most) }
