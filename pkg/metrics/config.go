package metrics

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Subsystem is the first part of the names of our metrics.
const Subsystem = "paddock"

var (
	reloadSuccess = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: Subsystem, Name: "config_last_reload_success", StabilityLevel: metrics.ALPHA,
		Help: "Whether the last read of the queue configuration gave a usable one (1) or not (0).",
	})
	reloadTimestamp = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: Subsystem, Name: "config_last_reload_success_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "When the queue configuration in force was read, in seconds since 1970.",
	})
	reloadFailures = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: Subsystem, Name: "config_reload_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "How often the queue configuration was read and could not be used.",
	})
	registerOnce sync.Once
)

// Register makes the metrics known; it may be called more than once.
func Register() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(reloadSuccess, reloadTimestamp, reloadFailures)
	})
}

// ConfigLoaded notes that a configuration came into force.
func ConfigLoaded(now time.Time) {
	reloadSuccess.Set(1)
	reloadTimestamp.Set(float64(now.Unix()))
}

// ConfigFailed notes that a configuration could not be used.
func ConfigFailed() {
	reloadSuccess.Set(0)
	reloadFailures.Inc()
}
