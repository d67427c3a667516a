package history_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// event is an event with a number.
func event(n int) output.Event { return output.Event{Node: strconv.Itoa(n)} }

func number(e output.Event) int {
	n, _ := strconv.Atoi(e.Node)
	return n
}

func taken(l *history.Events) (out []int) {
	events, _ := l.Take(nil)
	for _, e := range events {
		out = append(out, number(e))
	}
	return out
}

// The reader gets each event once, in order, or has it counted as lost.
func TestEventsReachTheReaderOnce(t *testing.T) {
	for seed := range int64(50) {
		r := rand.New(rand.NewSource(seed))
		l := history.NewEvents(20)
		added, got, lost, last := 0, 0, 0, -1
		var spare []output.Event
		take := func() {
			events, missing := l.Take(spare)
			lost += missing
			for _, e := range events {
				n := number(e)
				expect.That(t, n > last && !e.At.IsZero(), "seed %d: the reader gets %+v after %d", seed, e, last)
				last = n
				got++
			}
			clear(events)
			spare = events
		}
		for n := range 500 {
			l.Add(event(n))
			added++
			if r.Intn(3) > 0 {
				l.EndChange(time.Unix(int64(n+1), 0))
			}
			if r.Intn(12) == 0 {
				take()
			}
			if err := l.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		l.EndChange(time.Unix(1000, 0))
		take()
		expect.That(t, got+lost == added && lost > 0, "seed %d: the reader got %d and lost %d of %d", seed, got, lost, added)
	}
}

func TestEventsOfAChangeHaveItsTime(t *testing.T) {
	l := history.NewEvents(10)
	l.Add(event(1))
	l.EndChange(time.Unix(1, 0))
	l.Add(event(2))
	l.AddFirst(event(3))
	expect.Same(t, "before the change ends", []int{1}, taken(l))
	l.EndChange(time.Unix(2, 0))
	events, _ := l.Take(nil)
	first, last := event(3), event(2)
	first.At, last.At = time.Unix(2, 0), time.Unix(2, 0)
	expect.Same(t, "after the change", []output.Event{first, last}, events)
}

func TestTheReaderIsSignaled(t *testing.T) {
	l := history.NewEvents(10)
	l.EndChange(time.Unix(2, 0))
	expect.That(t, len(l.Ready()) == 0, "signaled without an event")
	l.Add(event(3))
	l.EndChange(time.Unix(3, 0))
	expect.That(t, len(l.Ready()) == 1, "not signaled")
	expect.Same(t, "taken", []int{3}, taken(l))
	expect.Same(t, "events that are kept after that", 0, l.Len())
}

// Adding and taking allocate nothing once there are buffers.
func TestEventsAllocateNothing(t *testing.T) {
	l := history.NewEvents(1 << 16)
	var spare []output.Event
	got := testing.AllocsPerRun(100, func() {
		for range 100 {
			l.Add(output.Event{Node: "n"})
			l.EndChange(time.Unix(1, 0))
		}
		spare, _ = l.Take(spare)
	})
	expect.That(t, got == 0, "%v allocations for 100 events", got)
}

type thing struct {
	history.Mark[int]
	value int
}

func recordOfThing(x *thing) *int { return &x.value }

func copyOfThing(x *thing) *int { return new(x.value) }

type dirty = history.Dirty[string, int, *thing]

// A reader that applies what it takes has a copy of all things, whatever happened
// between its calls and however little it takes at a time.
func TestDirtyKeepsACopyUpToDate(t *testing.T) {
	for seed := range int64(50) {
		r := rand.New(rand.NewSource(seed))
		var d dirty
		things, names, copied := map[string]*thing{}, map[*thing]string{}, map[string]*int{}
		take := func(gone int) {
			for _, name := range d.TakeGone(gone) {
				delete(copied, name)
			}
			d.Take(2, func(x *thing) *int {
				copied[names[x]] = copyOfThing(x)
				return copied[names[x]]
			})
		}
		for step := range 400 {
			name := fmt.Sprint("t", r.Intn(20))
			x := things[name]
			switch {
			case x == nil:
				x = &thing{value: step}
				things[name], names[x] = x, name
				d.Add(x)
			case r.Intn(4) == 0:
				delete(things, name)
				d.Remove(x, name)
				d.Remove(x, name)
			default:
				x.value = step
				d.Add(x)
			}
			if err := d.Check(maps.All(things), recordOfThing); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if r.Intn(3) == 0 {
				take(3)
			}
		}
		for d.Len() > 0 {
			take(2)
		}
		same := func(value *int, x *thing) bool { return *value == x.value }
		expect.That(t, maps.EqualFunc(copied, things, same), "seed %d: the copy of %d things differs", seed, len(things))
	}
}

func TestDirtyNoticesAMissingMark(t *testing.T) {
	var d dirty
	x := &thing{value: 1}
	all := maps.All(map[string]*thing{"x": x})
	expect.That(t, d.Check(all, recordOfThing) != nil, "a new thing without a mark is not noticed")
	d.Add(x)
	d.Take(1, copyOfThing)
	expect.Holds(t, d.Check(all, recordOfThing))
	x.value = 2
	expect.That(t, d.Check(all, recordOfThing) != nil, "a changed thing without a mark is not noticed")
}

// told runs the checks of one pod each second and returns the seconds at which users are
// told something, and what.
func told(r *history.Reports, x *history.Report, from, to int, w history.Waiting) (at []int, codes []reasons.Code) {
	for second := from; second <= to; second++ {
		now := time.Unix(int64(second), 0)
		for due, ok := r.Next(now); ok; due, ok = r.Next(now) {
			if due != x {
				panic("another pod is due")
			}
			if r.ShouldReport(x, now, w) {
				at, codes = append(at, second), append(codes, w.Code)
			}
		}
	}
	return at, codes
}

func TestReportsWaitAndRepeat(t *testing.T) {
	over := history.Waiting{Code: reasons.OverMax, Cause: 1}
	for _, c := range []struct {
		name string
		told reasons.Code
		w    history.Waiting
		to   int
		want []int
	}{
		{"a quota", "", over, 1790, []int{1}},
		{"a quota, repeated", "", over, 1810, []int{1, 1801}},
		{"pods before it", "", history.Waiting{Code: reasons.InOrder, Cause: 1}, 100, []int{30}},
		{"nothing", "", history.Waiting{}, 100, nil},
		{"told by an earlier process", reasons.OverMax, over, 100, nil},
		{"another reason than an earlier process told", reasons.InOrder, over, 100, []int{1}},
		{"an earlier process told, and it waits no more", reasons.OverMax, history.Waiting{}, 100, []int{1}},
	} {
		r := history.NewReports()
		x := r.Expect("p", c.told, time.Unix(0, 0))
		at, _ := told(&r, x, 0, c.to, c.w)
		expect.Same(t, c.name+": told at", c.want, at)
		expect.Holds(t, r.Check())
	}
}

// A pod that runs gets its report taken back, and is then forgotten.
func TestReportsAreTakenBack(t *testing.T) {
	r := history.NewReports()
	x := r.Expect("p", "", time.Unix(0, 0))
	told(&r, x, 0, 5, history.Waiting{Code: reasons.OverMax, Cause: 1})
	expect.That(t, !r.Placed(x, time.Unix(6, 0)), "forgotten before the report is taken back")
	at, codes := told(&r, x, 6, 100, history.Waiting{Placed: true})
	expect.That(t, slices.Equal(at, []int{6}) && codes[0] == "", "told at %v %q", at, codes)
	silent := r.Expect("q", "", time.Unix(0, 0))
	expect.That(t, r.Placed(silent, time.Unix(0, 0)), "kept although nothing was told")
	_, ok := r.Next(time.Unix(1000, 0))
	expect.That(t, !ok, "a check is due for a pod that runs")
}

// The wait of a pod begins anew when its report is taken back.
func TestReportsWaitAgain(t *testing.T) {
	r := history.NewReports()
	x := r.Expect("p", "", time.Unix(0, 0))
	told(&r, x, 0, 50, history.Waiting{Code: reasons.OverMax, Cause: 1})
	at, _ := told(&r, x, 51, 60, history.Waiting{})
	expect.Same(t, "taken back at", []int{51}, at)
	at, _ = told(&r, x, 61, 100, history.Waiting{Code: reasons.InOrder, Cause: 1})
	expect.Same(t, "told of the order at", []int{81}, at)
}

func TestCauseOfVerdict(t *testing.T) {
	const told = "queue root.team-1: hugepages-2Mi used 3, requested 1Gi, max 4"
	for _, c := range []struct {
		name, text string
		same       bool
	}{
		{"the same", told, true},
		{"other amounts", "queue root.team-1: hugepages-2Mi used -3500m, requested 2Gi, max 40", true},
		{"what the amounts contain", "queue root.team-1: hugepages-2Mi used 3 (with pods about to be placed), " +
			"requested 1Gi, max 4", true},
		{"another queue", "queue root.team-2: hugepages-2Mi used 3, requested 1Gi, max 4", false},
		{"another type", "queue root.team-1: hugepages-1Gi used 3, requested 1Gi, max 4", false},
		{"another subject", "user root.team-1: hugepages-2Mi used 3, requested 1Gi, max 4", false},
		{"no end", "queue root.team-1: hugepages-2Mi used 3, requested 1Gi", false},
		{"nothing", "", false},
	} {
		same := history.CauseOfVerdict(told) == history.CauseOfVerdict(c.text)
		expect.Same(t, c.name+": the same cause", c.same, same)
	}
}

func TestCausesAreKnown(t *testing.T) {
	for _, text := range []string{"", "1", "queue root.a", "\x00"} {
		if history.CauseOfVerdict(text) == history.UnknownCause || history.CauseOfSentence(text) == history.UnknownCause {
			t.Errorf("%q has the cause that stands for none", text)
		}
	}
	expect.That(t, history.CauseOfSentence("line 1") != history.CauseOfSentence("line 2"),
		"a sentence that never changes by itself has numbers that count")
}
