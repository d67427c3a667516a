package unmet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// tree is queues with what is used and waited for: "root.a used=vcore=2 preempted=vcore=1 pending=vcore=3".
func tree(tb testing.TB, settings string, usage ...string) *queues.Snapshot {
	tb.Helper()
	d := queues.NewDraftFrom(queuestest.MustTree(tb, settings))
	for _, line := range usage {
		words := strings.Fields(line)
		q, ok := d.Find(words[0])
		if !ok {
			tb.Fatalf("no queue %s", words[0])
		}
		d.Update(q.ID, func(u *queues.Usage) {
			for _, word := range words[1:] {
				what, amounts, _ := strings.Cut(word, "=")
				v := queuestest.Vector(strings.ReplaceAll(amounts, ",", " "))
				switch what {
				case "used":
					u.Allocated = u.Allocated.Add(v)
				case "preempted":
					u.Leaving, u.Preempted = u.Leaving.Add(v), u.Preempted.Add(v)
				case "leaving":
					u.Leaving = u.Leaving.Add(v)
				case "pending":
					u.Pending = u.Pending.Add(v)
				}
			}
		})
	}
	return d.Publish(nil)
}

// inOrder is for leaves where all pods wait for their turn.
func inOrder(leaves []*queues.Queue) []reasons.Code {
	return slices.Repeat([]reasons.Code{reasons.InOrder}, len(leaves))
}

func names(found []Demand) []string {
	var out []string
	for _, d := range found {
		out = append(out, d.Queue)
	}
	return out
}

func TestFind(t *testing.T) {
	const settings = `root
  a parent guaranteed.vcore=10
    x guaranteed.vcore=4
    y
  b guaranteed.memory=8
  c
  d guaranteed.memory=1 guaranteed.vcore=1`
	for _, c := range []struct {
		name  string
		usage []string
		want  []string
	}{
		{"no pod waits", nil, nil},
		{"no pod waits for what is guaranteed", []string{"root.b pending=vcore=1"}, nil},
		{"no guarantee", []string{"root.c pending=vcore=1"}, nil},
		{"a leaf and its parent", []string{"root.a.x used=vcore=3 pending=vcore=1"}, []string{"root.a", "root.a.x"}},
		{"the leaf has its own, so it may not ask for its parent", []string{"root.a.x used=vcore=4 pending=vcore=1"}, nil},
		{"its sibling may", []string{"root.a.x used=vcore=4 pending=vcore=1", "root.a.y pending=vcore=1"}, []string{"root.a"}},
		{"the parent has its own: the leaf may ask its sibling", []string{"root.a.y used=vcore=10", "root.a.x pending=vcore=1"}, []string{"root.a.x"}},
		{"what plans take is not used", []string{"root.b used=memory=8 preempted=memory=1 pending=memory=1"}, []string{"root.b"}},
		{"what leaves by itself is used", []string{"root.b used=memory=8 leaving=memory=1 pending=memory=1"}, nil},
		{"each type for itself", []string{"root.d used=memory=1 pending=memory=1,vcore=1"}, []string{"root.d"}},
		{"exactly the guarantee", []string{"root.b used=memory=8 pending=memory=1"}, nil},
	} {
		expect.Same(t, c.name, c.want, names(Find(tree(t, settings, c.usage...), inOrder)))
	}
}

func TestReasons(t *testing.T) {
	const settings = `root
  a parent guaranteed.vcore=10
    x
    y
    z`
	s := tree(t, settings, "root.a.x pending=vcore=1", "root.a.y pending=vcore=1", "root.a.z pending=vcore=1")
	for _, c := range []struct {
		codes []reasons.Code
		want  []Demand
	}{
		{[]reasons.Code{"", "", ""}, nil},
		{[]reasons.Code{reasons.PreemptionRefused, "", reasons.PreemptionPaced}, []Demand{{"root.a", reasons.PreemptionPaced}}},
		{[]reasons.Code{reasons.PreemptionPaced, "", reasons.PreemptionRefused}, []Demand{{"root.a", reasons.PreemptionPaced}}},
		{[]reasons.Code{reasons.PreemptionDelayed, reasons.MakingRoom, reasons.InOrder}, []Demand{{"root.a", reasons.MakingRoom}}},
	} {
		expect.Same(t, fmt.Sprintf("%v", c.codes), c.want, Find(s, func([]*queues.Queue) []reasons.Code { return c.codes }))
	}
	known := map[reasons.Code]bool{}
	for _, code := range byNearness {
		_, is := reasons.Explain(code)
		expect.That(t, is && !known[code], "%s is no reason, or twice there", code)
		known[code] = true
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

var (
	aDelayed = Demand{"root.a", reasons.PreemptionDelayed}
	aRoom    = Demand{"root.a", reasons.MakingRoom}
	bRefused = Demand{"root.b", reasons.PreemptionRefused}
)

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

var told = map[Demand]time.Duration{
	aRoom:    3500 * time.Millisecond,
	aDelayed: 5 * time.Second,
	bRefused: 6 * time.Second,
}

type looking func(m *Meter, now time.Time, found []Demand) ([]Demand, time.Duration, []time.Duration)

func tell(look looking) (map[Demand]time.Duration, [][]time.Duration) {
	m, totals, all := &Meter{}, map[Demand]time.Duration{}, [][]time.Duration{}
	for _, l := range story {
		unmet, passed, ended := look(m, at(l.at), l.found)
		for _, d := range unmet {
			totals[d] += passed
		}
		all = append(all, ended)
	}
	return totals, all
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
func early(m *Meter, now time.Time, found []Demand) ([]Demand, time.Duration, []time.Duration) {
	m.found = found
	return m.Look(now, found)
}

// late does not see that a reason changed.
func late(m *Meter, now time.Time, found []Demand) ([]Demand, time.Duration, []time.Duration) {
	before, passed, ended := m.Look(now, found)
	for i := range m.found {
		for _, d := range before {
			if d.Queue == m.found[i].Queue {
				m.found[i] = d
			}
		}
	}
	return before, passed, ended
}

func TestMeterForgets(t *testing.T) {
	m := &Meter{}
	m.Look(at(0), []Demand{aDelayed, bRefused})
	m.Look(at(2), []Demand{aDelayed, bRefused})
	m.Pause() // another process leads
	unmet, _, ended := m.Look(at(100), []Demand{aDelayed})
	expect.That(t, unmet == nil && ended == nil, "something was unmet or ended while it was not looked at")
	unmet, passed, _ := m.Look(at(101), []Demand{aDelayed, bRefused})
	expect.Same(t, "after a pause", []Demand{aDelayed}, unmet)
	expect.Same(t, "after a pause", time.Second, passed)
}
