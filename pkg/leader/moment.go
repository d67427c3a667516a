package leader

import "time"

// moment is a time on both clocks: monotonic, counted from some fixed time, and wall.
type moment struct {
	monotonic time.Duration
	wall      time.Time
}

// momentOf returns the moment of a time, counted from a fixed one. Both must
// come from time.Now.
func momentOf(t, from time.Time) moment {
	return moment{monotonic: t.Sub(from), wall: t.Round(0)}
}

func (m moment) add(d time.Duration) moment {
	return moment{monotonic: m.monotonic + d, wall: m.wall.Add(d)}
}

// before returns whether m is earlier on both clocks. The monotonic clock does
// not notice that the machine slept, the wall clock can be set back.
func (m moment) before(other moment) bool {
	return m.monotonic < other.monotonic && m.wall.Before(other.wall)
}
