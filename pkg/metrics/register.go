package metrics

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/paddock-scheduler/paddock/pkg/store"
)

var (
	registerOnce sync.Once
	cluster      = &collector{}

	drifts = newCounters("store_drift_total")
	lost   = newCounter("decision_steps_lost_total")

	reloadSuccess   = newGauge("config_last_reload_success")
	reloadTimestamp = newGauge("config_last_reload_success_timestamp_seconds")
	reloadFailures  = newCounter("config_reload_failures_total")
	// From a second to about an hour.
	timeToGuaranteeSeconds = newHistogram("time_to_guarantee_seconds", metrics.ExponentialBuckets(1, 2, 13))
)

// Register makes the metrics known; it may be called more than once.
func Register() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(reloadSuccess, reloadTimestamp, reloadFailures, timeToGuaranteeSeconds, decided, rejected, held, lostHolds, planned, lost, drifts)
		legacyregistry.CustomMustRegister(cluster)
	})
}

// Follow has the gauges show a store from now on, and so many of its queues by
// name. There is one scheduler in a process, so the last one counts.
func Follow(s *store.Readers, most int) { cluster.source.Store(&subject{s, most}) }

// StepsLost counts steps of decisions that were dropped.
func StepsLost(steps int) { lost.Add(float64(steps)) }

// Drifted counts a difference of a kind between the books and the API server.
func Drifted[Kind ~string](kind Kind) { drifts.WithLabelValues(string(kind)).Inc() }

// Audited creates the series of all kinds with 0, so that the first finding is an increase.
func Audited[Kind ~string](kinds []Kind) {
	Register()
	for _, kind := range kinds {
		drifts.WithLabelValues(string(kind))
	}
}

// ConfigLoaded notes that a valid configuration was read.
func ConfigLoaded(now time.Time) {
	reloadSuccess.Set(1)
	reloadTimestamp.Set(float64(now.Unix()))
}

// ConfigFailed notes that a configuration could not be used.
func ConfigFailed() {
	reloadSuccess.Set(0)
	reloadFailures.Inc()
}
