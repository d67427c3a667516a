//go:debug randseednop=0

package simulation_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestMain(m *testing.M) {
	// Stacks name the seed of their history, see live. The go:debug directive does not
	// support this setting.
	if err := os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")); err != nil {
		panic(err)
	}
	klog.SetLogger(klog.Logger{}) // upstream logs every pod that fits no node
	metrics.Register()
	// A bubble of synctest has its own clock and its own goroutines. The goroutine behind
	// the signal that upstream listens for belongs to the whole program and must not
	// start in a bubble. The handler that delays error reports since the last report must
	// be removed, because the last report may be of another clock.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // there is no other way
	flag.Parse()
	// With one processor goroutines interleave less than in parallel, so that the seed
	// decides as much as possible.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(800)
	go watched.watch(*patienceFlag)
	os.Exit(m.Run())
}

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

func (r result) report() string {
	last := r.last[max(0, len(r.last)-remembered):]
	return fmt.Sprintf("seed %d, step %d: %v\n\nwhat happened last (step, time, what):\n%s\n\nagain: %s",
		r.seed, r.steps, r.err, strings.Join(last, "\n"), again(r.seed))
}

func again(seed uint64) string {
	return fmt.Sprintf("go test ./test/simulation -run '^TestSimulation$' -v -args -seed %d -tell /tmp/history.txt", seed)
}

type counted int

// A set of histories of at least so many steps has an event at least once. Without these bounds the
// daily histories could have settings that never exercise a check, and would show nothing.
const (
	always = 0
	often  = 200_000
	rarely = 1_000_000
	shown  = math.MaxInt // never: it is only shown
)

// The events that are counted. Answers are those of the filter.
var (
	cycles          = counting("scheduling cycles", shown)
	decided         = counting("decisions that were judged", shown)
	undecided       = counting("decisions that could not be judged", shown)
	bound           = counting("binds with a node and queues that were judged", shown)
	unbound         = counting("binds where another client had touched one of these", shown)
	rests           = counting("rests that were checked", shown)
	restless        = counting("rests where PodGroups kept changing", shown)
	swept           = counting("rests after a flush of the scheduler's queue", shown)
	guarded         = counting("plans that were judged by a budget", always)
	unguarded       = counting("plans of a budget that had changed", shown)
	besideNominated = counting("plans that were judged beside nominated pods", always)
	lost            = counting("rooms that were made and lost", always)
	besideBound     = counting("pods that the neighbour bound", always)
	asked           = counting("pods that wait at rest, each tried with a plan", always)
	rooms           = counting("pods that got free room, each checked against the order", always)
	underMax        = counting("rooms on nodes with room for both pods, where a max has none", rarely)
	keptFirst       = counting("nodes refused because a DaemonSet pod goes first there", always)
	lingered        = counting("pods that the tenant deleted and that stay for longer than a hold", always)
	shortened       = counting("pods that were deleted with a long grace period and preempted then", rarely)
	forgeries       = counting("pods for one node that were told and are of no DaemonSet", always)
	moved           = counting("pods with a node that the hostile tenant made name another queue", always)
	fullOfQueues    = counting("looks at queues of which rules may make no more", always)
	originated      = counting("plans that take originators, each compared with others", always)
	unhealthy       = counting("plans that take pods which run and are not ready, of a budget", always)
	undeletable     = counting("deletes that were refused because the pod is too large", often)
	invented        = counting("types that no node offers, of pods that were told", always)
	unwanted        = counting("pods that were told that no node is wanted for them", always)
	wantedAgain     = counting("pods that were told later that one is wanted", always)
	heldTainted     = counting("holds of nodes that got a taint which the asker does not tolerate", rarely)
	heldRelabelled  = counting("holds of nodes that lost the label which the asker requires", rarely)
	heldGone        = counting("holds of nodes that were deleted", rarely)
	heldForOwn      = counting("nodes that are held while pods of the asker's own namespace leave", always)
	besideOwn       = counting("answers about nodes of which all holders wait for pods of their own", always)
	keptBesideOwn   = counting("those of these answers that keep room for the holders", always)
	saidHeld        = counting("answers that a node is held", always)
	saidFirst       = counting("answers that a node has room for another pod first", always)
	crowded         = counting("plans that wait for room beside pods of the same queue", always)
	groupTimedOut   = counting("holds of PodGroups that timed out", often)
)

// counters is what is counted, and from how many steps on it has to happen.
var counters []struct {
	what  string
	steps int
}

func counting(what string, steps int) counted {
	counters = append(counters, struct {
		what  string
		steps int
	}{what, steps})
	return counted(len(counters) - 1)
}

type counts []int64

func (c counts) String() string {
	var all []string
	for i, n := range c {
		all = append(all, fmt.Sprint(n, " ", counters[i].what))
	}
	return strings.Join(all, "; ")
}

func (s *simulation) count(what counted) { s.counts[what].Add(1) }

var shares = []struct {
	what    string
	not     counted // the others
	of      []counted
	percent int64 // that histories must have judged at least
}{
	{"decisions were judged", undecided, []counted{decided, undecided}, 75},
	{"binds were judged in full", unbound, []counted{bound, unbound}, 55},
	{"plans were judged by a budget", unguarded, []counted{guarded, unguarded}, 60},
	{"looks at everything were at rest", restless, []counted{rests}, 95},
	{"looks at everything came before the queue was swept", swept, []counted{rests}, 95},
}

// tooFew finds histories of which too little was judged.
func (c counts) tooFew(steps int) error {
	var errs []error
	for _, s := range shares {
		all := int64(0)
		for _, of := range s.of {
			all += c[of]
		}
		if part := all - c[s.not]; part*100 < all*s.percent || all == 0 {
			errs = append(errs, fmt.Errorf("%d of %d %s, want %d %%", part, all, s.what, s.percent))
		}
	}
	for i, of := range counters {
		if c[i] == 0 && steps >= of.steps {
			errs = append(errs, fmt.Errorf("no %s", of.what))
		}
	}
	return errors.Join(errs...)
}

// TestTooLittleJudgedIsNoticed checks counts that are just enough, and then counts with one less, or
// with one more that could not be judged.
func TestTooLittleJudgedIsNoticed(t *testing.T) {
	enough := make(counts, len(counters))
	for i := range counters {
		enough[i] = 1
	}
	for of, n := range map[counted]int64{
		decided: 75, undecided: 25, bound: 55, unbound: 45, guarded: 60, unguarded: 40,
		rests: 100, restless: 5, swept: 5,
	} {
		enough[of] = n
	}
	expect.Holds(t, enough.tooFew(rarely))
	for i, of := range counters {
		worse := slices.Clone(enough)
		worse[i] = 0
		expect.That(t, of.steps > rarely || worse.tooFew(rarely) != nil, "not noticed: no %s", of.what)
	}
	for _, of := range []counted{undecided, unbound, unguarded, restless, swept} {
		worse := slices.Clone(enough)
		worse[of]++
		expect.That(t, worse.tooFew(rarely) != nil, "not found: %v", worse)
	}
	none := make(counts, len(counters))
	expect.That(t, none.tooFew(rarely) != nil, "a run without any judged plan is not found")
}

// watchdog checks in real time whether a history goes on. Virtual time stands still while a goroutine
// waits for a lock or loops, so a deadlock cannot be seen from inside the bubble.
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
	r := result{seed: s.seed, steps: int(s.step.Load()), last: []string{"(the lock of this list is held)"}}
	r.err = fmt.Errorf("time does not go on: no step ended within %v; a lock is held, or a loop runs", patience)
	if s.mu.TryLock() {
		r.last = s.told
		s.mu.Unlock()
	}
	fmt.Printf("FAIL: %s\n\n", r.report())
	_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 2)
	os.Exit(1)
}

// TestStandstillIsNoticed runs the test binary with two locks that are taken in both orders.
func TestStandstillIsNoticed(t *testing.T) {
	out, err := liveBeside(t, bugStandstill, "-patience", "3s")
	found := strings.Contains(out, "time does not go on") && strings.Contains(out, "again: ")
	expect.That(t, err != nil && found, "not found: %v\n%.2000s", err, out)
}

// TestPanicTellsItsSeed runs the test binary with a panic in a goroutine of a process,
// which cannot be recovered.
func TestPanicTellsItsSeed(t *testing.T) {
	out, err := liveBeside(t, bugPanic)
	told := strings.Contains(out, "panic: there is a bug") && regexp.MustCompile(`\[running.*"?seed"?: "?[0-9]+`).MatchString(out)
	expect.That(t, err != nil && told, "the panic does not tell its seed: %v\n%.2000s", err, out)
}

// liveBeside runs the test binary with a planted bug that may end it.
func liveBeside(t *testing.T, bug string, args ...string) (out string, err error) {
	t.Helper()
	args = append([]string{"-test.run", "^TestSimulation$", "-steps", "5000", "-bug", bug}, args...)
	said, err := exec.CommandContext(t.Context(), expect.Get(os.Executable())(t), args...).CombinedOutput()
	return string(said), err
}
