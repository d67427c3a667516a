package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

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

func TestCauseOfVerdict(t *testing.T) {
	const told = "queue root.team-1: hugepages-2Mi used 3, requested 1Gi, max 4"
	for _, c := range []struct {
		name, text string
		same       bool
	}{
		{"the same", told, true},
		{"other amounts", "queue root.team-1: hugepages-2Mi used -3500m, requested 2Gi, max 40", true},
		{"what the amounts contain", "queue root.team-1: hugepages-2Mi used 3 (with pods about to be placed), requested 1Gi, max 4", true},
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
