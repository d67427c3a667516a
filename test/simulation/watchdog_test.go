package simulation_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// watchdog checks in real time whether a history goes on. Virtual time stands still while
// a goroutine waits for a lock or loops, so a deadlock cannot be seen from inside the
// bubble.
type watchdog struct {
	signs atomic.Int64               // signs of life
	now   atomic.Pointer[simulation] // nil between histories
}

var watched watchdog

func (w *watchdog) begin(s *simulation) { w.now.Store(s) }
func (w *watchdog) end()                { w.now.Store(nil) }
func (w *watchdog) alive()              { w.signs.Add(1) }

// watch checks until the end of the program.
func (w *watchdog) watch(patience time.Duration) {
	last, since := int64(-1), time.Now()
	for range time.Tick(patience / 20) {
		s := w.now.Load()
		if signs := w.signs.Load(); s == nil || signs != last {
			last, since = signs, time.Now()
		} else if time.Since(since) > patience {
			s.stuck(patience)
		}
	}
}

// stuck reports a standstill, and ends the program, because there is no other way.
func (s *simulation) stuck(patience time.Duration) {
	r := result{seed: s.seed, steps: int(s.at.Load()), last: []string{"(the lock of this list is held, too)"}}
	r.err = fmt.Errorf("time does not go on: no step ended within %v; a goroutine waits for a lock, or loops", patience)
	if s.mu.TryLock() {
		r.last = s.told
		s.mu.Unlock()
	}
	fmt.Printf("FAIL: %s\n\n", r.report())
	_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 2)
	os.Exit(1)
}

// TestStandstillIsNoticed runs the test binary with two locks that are taken in both
// orders.
func TestStandstillIsNoticed(t *testing.T) {
	out, err := liveBeside(t, bugStandstill, "-patience", "3s")
	if err == nil || !strings.Contains(out, "time does not go on") || !strings.Contains(out, "again: ") {
		t.Errorf("not found: %v\n%.2000s", err, out)
	}
}

// TestPanicTellsItsSeed runs the test binary with a panic in a goroutine of a process,
// which cannot be recovered.
func TestPanicTellsItsSeed(t *testing.T) {
	out, err := liveBeside(t, bugPanic)
	if err == nil || !strings.Contains(out, "panic: there is a bug") || !regexp.MustCompile(`\[running.*"?seed"?: "?[0-9]+`).MatchString(out) {
		t.Errorf("the panic does not tell its seed: %v\n%.2000s", err, out)
	}
}

// liveBeside runs the test binary with a planted bug that may end it.
func liveBeside(t *testing.T, bug string, args ...string) (out string, err error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), program, append([]string{"-test.run", "^TestSimulation$", "-steps", "5000", "-bug", bug}, args...)...).CombinedOutput()
	return string(said), err
}
