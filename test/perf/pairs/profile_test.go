package main

import (
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestAccounted(t *testing.T) {
	for _, tt := range []struct {
		out  string
		want float64
		err  bool
	}{
		{"Type: cpu\nShowing nodes accounting for 0.69s, 0.75% of 91.93s total\n", 0.69, false},
		{"Type: cpu\nShowing nodes accounting for 12s, 75% of 16s total\n", 12, false},
		{"Active filters:\n   show_from=nobody\nShowing nodes accounting for 0, 0% of 91.93s total\n", 0, false},
		{"Showing nodes accounting for 690ms, 0.75% of 91.93s total\n", 0, true},
		{"Showing nodes accounting for 0.69 seconds of 91.93 total\n", 0, true},
		{"Showing top 10 nodes out of 20\n", 0, true},
		{"", 0, true},
	} {
		if got, err := accounted([]byte(tt.out)); got != tt.want || (err != nil) != tt.err {
			t.Errorf("%q: %v, %v; want %v, error %v", tt.out, got, err, tt.want, tt.err)
		}
	}
}

// spin uses so much CPU time; the test looks for it in a profile.
//
//go:noinline
func spin(t *testing.T, long time.Duration) {
	t.Helper()
	for began := used(t); used(t)-began < long; {
	}
}

func used(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	expect.OK(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestSampled runs the real pprof on a profile of this process.
func TestSampled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu.prof")
	file := expect.Get(os.Create(path))(t)
	expect.OK(t, pprof.StartCPUProfile(file))
	spin(t, 500*time.Millisecond)
	pprof.StopCPUProfile()
	expect.OK(t, file.Close())
	binary := expect.Get(os.Executable())(t)
	for choose, some := range map[string]bool{
		"-show_from=pairs\\.spin$": true, "-focus=test/perf/pairs": true, "-show_from=" + cycle: false, "-focus=" + ours: false,
	} {
		if got, err := sampled(t.Context(), binary, path, choose); err != nil || got > 0 != some {
			t.Errorf("%s: %v s, %v; want some: %v", choose, got, err, some)
		}
	}
	if got, err := sampled(t.Context(), binary, filepath.Join(t.TempDir(), "none.prof")); err == nil {
		t.Errorf("no profile: %v s and no error", got)
	}
}

func TestDoubt(t *testing.T) {
	for name, tt := range map[string]struct {
		p    pairOf
		want string // part of the error
	}{
		"all there":                    {pairOf{measured{cycles: 2}, measured{cycles: 2, ours: 0.1, oursAnywhere: 0.3}}, ""},
		"ours in other goroutines":     {pairOf{measured{cycles: 2}, measured{cycles: 2, oursAnywhere: 0.3}}, ""},
		"one run without a sample":     {pairOf{measured{}, measured{cycles: 0.01, oursAnywhere: 0.3}}, ""},
		"another name of the cycle":    {pairOf{measured{}, measured{oursAnywhere: 0.3}}, "ScheduleOne"},
		"another name of the module":   {pairOf{measured{cycles: 2}, measured{cycles: 2}}, "paddock"},
		"ours in the run of base only": {pairOf{measured{oursAnywhere: 1, cycles: 1}, measured{cycles: 1}}, "paddock"},
	} {
		err := tt.p.doubt()
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
