package metrics

var (
	drifts = newCounters(storeDrift)
	lost   = newCounter(stepsLost)
)

// StepsLost counts steps of decisions that were dropped.
func StepsLost(steps int) { lost.Add(float64(steps)) }

// Drifted notes that a thing of a kind is otherwise in the books than in the API server.
func Drifted(kind string) { drifts.WithLabelValues(kind).Inc() }

// Audited shows the kinds of things that are looked after before anything is found,
// so that the first finding is an increase.
func Audited(kinds []string) {
	Register()
	for _, kind := range kinds {
		drifts.WithLabelValues(kind)
	}
}
