package perf

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// look is a reading: the time, the CPU time of the process, and the timer of the
// benchmark.
type look struct {
	at         time.Time
	cpu, timer time.Duration
}

// span returns the CPU time and the length of the measured part. Scheduler_perf reads the
// metrics once when that part begins, right before it resets the timer, then mostly once
// a second, and many times at once after it has stopped the timer. The time between two
// looks is not reliable, because a reader may be late.
func span(looks []look) (used, length time.Duration, err error) {
	end := len(looks) - 1
	for end > 0 && looks[end-1].timer == looks[end].timer {
		end--
	}
	if end >= len(looks)-1 {
		return 0, 0, fmt.Errorf("the metrics were read %d times, never twice with the timer stopped", len(looks))
	}
	begin := end - 1
	for begin >= 0 && looks[begin].timer <= looks[begin+1].timer {
		begin--
	}
	if begin < 0 {
		return 0, 0, errors.New("the metrics were not read before the timer was set back to zero")
	}
	length = looks[end].timer
	// A busy machine may be late by a second. If it is later, the CPU time is that of
	// something else.
	if between := looks[end].at.Sub(looks[begin].at); between < length || between > length+length/4+time.Second {
		return 0, 0, fmt.Errorf("the timer ran for %v, and between the looks at its begin and end were %v", length, between)
	}
	return looks[end].cpu - looks[begin].cpu, length, nil
}

func TestSpan(t *testing.T) {
	const late = 900
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	// After so many ms, with twice as much CPU time used.
	at := func(after, timer int) look { return look{time.Unix(0, 0).Add(ms(after)), 2 * ms(after), ms(timer)} }
	for name, tt := range map[string]struct {
		looks        []look
		used, length int // ms; 0 is an error
	}{
		"samples":                  {[]look{at(5000, 5000), at(7001, 2000), at(8001, 3000), at(8502, 3500), at(8510, 3500), at(8520, 3500)}, 7004, 3500},
		"no sample":                {[]look{at(5000, 5000), at(5502, 500), at(5510, 500)}, 1004, 500},
		"others before":            {[]look{at(100, 100), at(2000, 2000), at(5000, 5000), at(7001, 2000), at(7502, 2500), at(7510, 2500)}, 5004, 2500},
		"begun too soon to tell":   {[]look{at(10, 10), at(2011, 2000), at(3011, 3000), at(3012, 3000)}, 0, 0},
		"late at the end":          {[]look{at(5000, 5000), at(7001, 2000), at(8502, 3500), at(9502, 3500), at(11502, 3500)}, 7004, 3500},
		"late in the middle":       {[]look{at(5000, 5000), at(7901, 2900), at(8001, 3000), at(8502, 3500), at(8510, 3500)}, 7004, 3500},
		"late for the end":         {[]look{at(5000, 5000), at(7001, 2000), at(7501+late, 2500), at(8500, 2500)}, 6802, 2500},
		"far too late for the end": {[]look{at(5000, 5000), at(7001, 2000), at(19000, 2500), at(19001, 2500)}, 0, 0},
		"far too early":            {[]look{at(1000, 1000), at(5000, 900), at(8000, 3000), at(8001, 3000)}, 0, 0},
		"the timer misread":        {[]look{at(5000, 5000), at(7001, 2000), at(8501, 7000), at(8502, 3500), at(8510, 3500)}, 0, 0},
		"never set back":           {[]look{at(5000, 5000), at(6000, 6000), at(7000, 7000), at(7001, 7000)}, 0, 0},
		"never stopped":            {[]look{at(5000, 5000), at(7001, 2000), at(8001, 3000), at(9001, 4000)}, 0, 0},
		"stopped from the first":   {[]look{at(5000, 0), at(7001, 0), at(8001, 0)}, 0, 0},
		"one":                      {[]look{at(5000, 5000)}, 0, 0},
		"none":                     {nil, 0, 0},
	} {
		used, length, err := span(tt.looks)
		expect.That(t, (err != nil) == (tt.length == 0) && used == ms(tt.used) && length == ms(tt.length),
			"%s: %v CPU in %v, %v; want %d in %d ms", name, used, length, err, tt.used, tt.length)
	}
}

// wrongHeld returns an error if the number of held-back pods that have a node is wrong.
func wrongHeld(pods []corev1.Pod, all, want int) error {
	got := 0
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			got++
		}
	}
	if got != want || len(pods) != all {
		return fmt.Errorf("%d of %d pods that are held back have a node, want %d of %d", got, len(pods), want, all)
	}
	return nil
}

// TestWrongHeldIsNoticed shows that a queue that admits too many pods, or none, fails the
// run.
func TestWrongHeldIsNoticed(t *testing.T) {
	held := func(all, placed int) []corev1.Pod {
		pods := make([]corev1.Pod, all)
		for i := range placed {
			pods[i].Spec.NodeName = "node"
		}
		return pods
	}
	expect.Holds(t, wrongHeld(held(200, 100), 200, 100))
	for name, pods := range map[string][]corev1.Pod{
		"none": held(200, 0), "one more": held(200, 101), "all": held(200, 200), "pods are gone": held(199, 100),
	} {
		expect.That(t, wrongHeld(pods, 200, 100) != nil, "%s: not noticed", name)
	}
}
