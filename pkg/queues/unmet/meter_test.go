package unmet

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

var (
	aDelayed = Demand{"root.a", reasons.PreemptionDelayed}
	aRoom    = Demand{"root.a", reasons.MakingRoom}
	bRefused = Demand{"root.b", reasons.PreemptionRefused}
)

// look is one of a story.
type look struct {
	at    float64
	found []Demand
	ended []time.Duration
}

// story is two queues; one is served after 8.5 seconds.
var story = []look{
	{0, nil, nil},
	{1, []Demand{aDelayed}, nil},
	{4, []Demand{aDelayed, bRefused}, nil},
	{6, []Demand{aRoom, bRefused}, nil},
	{9.5, []Demand{bRefused}, []time.Duration{8500 * time.Millisecond}},
	{9.5, []Demand{bRefused}, nil}, // no time has passed
	{9, []Demand{bRefused}, nil},   // a clock that was set back
	{10, nil, []time.Duration{6 * time.Second}},
}

var told = []Total{
	{aRoom, 3500 * time.Millisecond},
	{aDelayed, 5 * time.Second},
	{bRefused, 6 * time.Second},
}

type looking func(m *Meter, now time.Time, found []Demand) []time.Duration

func tell(look looking) ([]Total, [][]time.Duration) {
	m, ended := NewMeter(), [][]time.Duration{}
	for _, l := range story {
		ended = append(ended, look(m, at(l.at), l.found))
	}
	return m.Totals(), ended
}

func TestMeter(t *testing.T) {
	totals, ended := tell((*Meter).Look)
	expect.Same(t, "totals", told, totals)
	for i, l := range story {
		expect.Same(t, fmt.Sprintf("at %v: ended", l.at), l.ended, ended[i])
	}
	for name, bug := range map[string]looking{"early": early, "late": late} {
		totals, _ := tell(bug)
		expect.That(t, !cmp.Equal(told, totals), "a planted bug is not found: %s", name)
	}
}

// early adds the time that passed to what is found at its end.
func early(m *Meter, now time.Time, found []Demand) []time.Duration {
	m.found = found
	return m.Look(now, found)
}

// late does not see that a reason changed.
func late(m *Meter, now time.Time, found []Demand) []time.Duration {
	before := m.found
	ended := m.Look(now, found)
	for i := range m.found {
		for _, d := range before {
			if d.Queue == m.found[i].Queue {
				m.found[i] = d
			}
		}
	}
	return ended
}

func TestMeterForgets(t *testing.T) {
	m := NewMeter()
	m.Look(at(0), []Demand{aDelayed, bRefused})
	m.Look(at(2), []Demand{aDelayed, bRefused})
	m.Pause() // another process leads
	if ended := m.Look(at(100), []Demand{aDelayed}); ended != nil {
		t.Errorf("ended while it was not looked at: %v", ended)
	}
	m.Look(at(101), []Demand{aDelayed, bRefused})
	expect.Same(t, "after a pause", []Total{{aDelayed, 3 * time.Second}, {bRefused, 2 * time.Second}}, m.Take())
}
