package unmet

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Total is for how long a queue had lawful unmet demand that waited for a reason.
type Total struct {
	Demand
	Time time.Duration
}

// Meter adds up how long demand was unmet. Make one with NewMeter.
type Meter struct {
	at    time.Time // of the last look; zero before the first
	found []Demand  // then
	since map[string]time.Time
	total map[Demand]time.Duration
}

// NewMeter returns a meter that has seen nothing.
func NewMeter() *Meter {
	return &Meter{since: map[string]time.Time{}, total: map[Demand]time.Duration{}}
}

// Look takes what is found now; a queue is in it at most once. It returns how long
// the demand was unmet of each queue where it is no more, in the order of their
// paths: the queue got what it is guaranteed, or nothing waits there any more.
// Times that are not after the last look add nothing.
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

// Pause forgets what was found: nothing is added before the next look, and no
// demand is taken to have ended.
func (m *Meter) Pause() {
	m.at, m.found = time.Time{}, nil
	clear(m.since)
}

// Keep forgets queues that are not there any more.
func (m *Meter) Keep(there func(queue string) bool) {
	maps.DeleteFunc(m.since, func(queue string, _ time.Time) bool { return !there(queue) })
	m.found = slices.DeleteFunc(m.found, func(d Demand) bool { return !there(d.Queue) })
}

// Take returns the totals and begins to add up anew.
func (m *Meter) Take() []Total {
	defer clear(m.total)
	return m.Totals()
}

// Totals returns what was added up since Take, by queue and reason.
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
