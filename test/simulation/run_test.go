package simulation_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

var (
	seedFlag     = flag.Uint64("seed", 0, "live the history of this seed only, and tell it; 0 for all")
	firstFlag    = flag.Uint64("first", 1, "the first seed")
	byFlag       = flag.Uint64("by", 1, "the distance between seeds; with -first 3 -by 4 all histories have the hostile tenant")
	stepsFlag    = flag.Int("steps", 0, "live so many steps; 0 for the usual number")
	bugFlag      = flag.String("bug", "", "plant a bug, by its name")
	tellFlag     = flag.String("tell", "", "write all that happens to this file")
	soakFlag     = flag.Bool("soak", false, "run until something is wrong or the process is ended")
	patienceFlag = flag.Duration("patience", 5*time.Minute, "how long a step may take by the clock on the wall")
	timesFlag    = flag.Int("times", 20, "with -seed: live it up to so many times, until it fails")
)

// historySteps is the length of one history. A failure is easier to read in a short
// history, and many failures happen at the start of a process.
const historySteps = 500

// TestSimulation runs histories; all invariants must hold in all of them. A soak runs them without
// end, and reports progress every minute, and from a million steps on also what was seen or
// judged too rarely.
func TestSimulation(t *testing.T) {
	defer tell(t)()
	seed, by, steps := *firstFlag, *byFlag, cmp.Or(*stepsFlag, dailySteps)
	switch {
	case *seedFlag != 0:
		seed, by, steps = *seedFlag, 0, *timesFlag*historySteps
	case *soakFlag:
		if steps = math.MaxInt; seed == 1 {
			seed = uint64(time.Now().Unix()) << 20 // other seeds than last time
		}
	}
	p := newProgress()
	for told := time.Now(); p.steps < steps; seed += by {
		r := live(t, seed, historySteps, *bugFlag)
		if p.add(r); r.err != nil {
			t.Fatal(r.report())
		}
		if *soakFlag && time.Since(told) > time.Minute {
			told = time.Now()
			fmt.Printf("seed %d: %v\n", seed, p)
			if err := p.counts.tooFew(p.steps); err != nil && p.steps >= 1_000_000 {
				fmt.Println("too few:", err)
			}
		}
	}
	t.Log(p)
	if err := p.counts.tooFew(steps); err != nil && *seedFlag == 0 && steps >= 10_000 {
		t.Error(err)
	}
}

// tell writes all events to a file, if requested.
func tell(t *testing.T) (done func()) {
	t.Helper()
	if *tellFlag == "" {
		return func() {}
	}
	f := expect.Get(os.Create(*tellFlag))(t)
	trace = f
	return func() {
		trace = nil
		expect.Holds(t, f.Close())
	}
}

// progress sums up histories.
type progress struct {
	began     time.Time
	histories int
	steps     int
	counts    counts
}

func newProgress() *progress {
	return &progress{began: time.Now(), counts: make(counts, len(counters))}
}

func (p *progress) add(r result) {
	p.histories++
	p.steps += r.steps
	for i := range r.counts {
		p.counts[i] += r.counts[i].Load()
	}
}

func (p *progress) String() string {
	return fmt.Sprintf("%d histories, %d steps, %.0f steps/s; %v", p.histories, p.steps, float64(p.steps)/time.Since(p.began).Seconds(), p.counts)
}

// report is the text for a failed history.
func (r result) report() string {
	last := r.last[max(0, len(r.last)-remembered):]
	return fmt.Sprintf("seed %d, step %d: %v\n\nwhat happened last (step, time, what):\n%s\n\nagain: %s",
		r.seed, r.steps, r.err, strings.Join(last, "\n"), again(r.seed))
}

// again is the command that replays a history.
func again(seed uint64) string {
	return fmt.Sprintf("go test ./test/simulation -run '^TestSimulation$' -v -args -seed %d -tell /tmp/history.txt", seed)
}
