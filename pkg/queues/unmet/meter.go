package unmet

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Total is for how long a queue had lawful unmet demand with one reason.
type Total struct {
	Demand
	Time time.Duration
}

// Meter adds up how long demand was unmet. Make one with NewMeter.
type Meter struct {
	at    time.Time // of the last look; zero before the first
	found []Demand  // at the last look
	since map[string]time.Time
	total map[Demand]time.Duration
}

// NewMeter returns an empty meter.
func NewMeter() *Meter {
	return &Meter{since: map[string]time.Time{}, total: map[Demand]time.Duration{}}
}

// Look records the unmet demand that was found at a time, with each queue at most once. It
// returns for how long demand was unmet in each queue where it has ended, in the order of
// their paths. Demand ends when the queue has its guarantee, or when no pod waits there, as
// in a queue that is gone. A time that is not after the last look adds nothing.
func (m *Meter) Look(now time.Time, found []Demand) []time.Duration {
	if m.at.IsZero() {
		m.at = now
	}
	if passed := now.Sub(m.at); passed > 0 {
		for _, d := range m.found {
			m.total[d] += passed
		}
		m.at = now
	}
	still := make(map[string]bool, len(found))
	for _, d := range found {
		still[d.Queue] = true
		if _, known := m.since[d.Queue]; !known {
			m.since[d.Queue] = now
		}
	}
	var ended []time.Duration
	for _, queue := range slices.Sorted(maps.Keys(m.since)) {
		if !still[queue] {
			ended = append(ended, now.Sub(m.since[queue]))
			delete(m.since, queue)
		}
	}
	m.found = slices.Clone(found)
	return ended
}

// Pause forgets what the last look found. The time until the next look is not added, and no
// demand counts as ended.
func (m *Meter) Pause() {
	m.at, m.found = time.Time{}, nil
	clear(m.since)
}

// Take returns the totals and resets them to zero.
func (m *Meter) Take() []Total {
	defer clear(m.total)
	return m.Totals()
}

// Totals returns the totals since the last Take, sorted by queue and reason.
func (m *Meter) Totals() []Total {
	out := make([]Total, 0, len(m.total))
	for d, t := range m.total {
		out = append(out, Total{d, t})
	}
	slices.SortFunc(out, func(a, b Total) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
