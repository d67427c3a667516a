package metrics

import "time"

var (
	reloadSuccess   = newGauge(reloadOK)
	reloadTimestamp = newGauge(reloadTime)
	reloadFailures  = newCounter(reloadsFailed)
)

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
