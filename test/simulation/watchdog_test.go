package simulation_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// watchdog looks, by the clock on the wall, whether a history goes on. Virtual time
// stands still while somebody waits for a lock, or runs in a circle; so a deadlock
// is not seen by anybody inside.
type watchdog struct {
	signs atomic.Int64               // of life
	now   atomic.Pointer[simulation] // nil between histories
}

var watched watchdog

func (w *watchdog) begin(s *simulation) { w.now.Store(s) }
func (w *watchdog) end()                { w.now.Store(nil) }
func (w *watchdog) alive()              { w.signs.Add(1) }

// watch looks until the end of the program.
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

// stuck tells that nothing goes on, and ends the program: there is no other way.
func (s *simulation) stuck(patience time.Duration) {
	step, told := s.at.Load(), []string{"(somebody holds the lock of this list, too)"}
	if s.mu.TryLock() {
		told = s.told[max(0, len(s.told)-remembered):]
		s.mu.Unlock()
	}
	fmt.Printf("FAIL: seed %d, step %d: time does not go on: no step ended within %v; somebody waits for a lock, or runs in a circle\n\nwhat happened last (step, time, what):\n%s\n\nagain: %s\n\n",
		s.seed, step, patience, strings.Join(told, "\n"), again(s.seed))
	_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 2)
	os.Exit(1)
}

// TestStandstillIsNoticed has the program run itself with two locks that are taken
// in different orders.
func TestStandstillIsNoticed(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "-test.run", "^TestSimulation$", "-steps", "5000", "-patience", "3s", "-bug", bugStandstill).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("time does not go on")) || !bytes.Contains(out, []byte("again: ")) {
		t.Errorf("nobody noticed: %v\n%.2000s", err, out)
	}
}
