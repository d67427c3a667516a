package unmet

import (
	"maps"
	"slices"
	"time"
)

// Meter tells how long demand was unmet. The zero Meter has not looked yet.
type Meter struct {
	at    time.Time            // of the last look; zero before the first
	found []Demand             // at the last look
	since map[string]time.Time // by queue of found: since when there is unmet demand
}

// Look records the unmet demand that was found at a time, with each queue at most once. It
// returns what the last look found and the time that has passed since: each of these was unmet
// for that time. It is nothing if the time is not after the last look.
//
// It also returns for how long demand was unmet in each queue where it has ended, in the order
// of their paths. Demand ends when the queue has its guarantee, or when no pod waits there, as
// in a queue that is gone.
func (m *Meter) Look(now time.Time, found []Demand) (unmet []Demand, passed time.Duration, ended []time.Duration) {
	if m.at.IsZero() {
		m.at = now
	}
	if passed = now.Sub(m.at); passed > 0 {
		unmet, m.at = m.found, now
	}
	since := make(map[string]time.Time, len(found))
	for _, d := range found {
		since[d.Queue] = now
		if before, known := m.since[d.Queue]; known {
			since[d.Queue] = before
		}
	}
	for _, queue := range slices.Sorted(maps.Keys(m.since)) {
		if _, still := since[queue]; !still {
			ended = append(ended, now.Sub(m.since[queue]))
		}
	}
	m.found, m.since = slices.Clone(found), since
	return unmet, passed, ended
}

// Pause forgets what the last look found. The time until the next look is not added, and no
// demand counts as ended.
func (m *Meter) Pause() { *m = Meter{} }
