package simulation_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// counted is a kind of event that histories count.
type counted int

// A set of histories of so many steps has every event at least once, except those that are only shown.
// Without them, the daily histories could have settings that never exercise a check, and
// would show nothing.
const (
	always = 0
	often  = 200_000
	rarely = 1_000_000
	shown  = math.MaxInt
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
	undeletable     = counting("deletes that were refused because the pod is too large", often) // 0 to 3 in 50,000 steps
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

// counts is how many of each kind there were.
type counts []int64

func (c counts) String() string {
	var all []string
	for i, n := range c {
		all = append(all, fmt.Sprint(n, " ", counters[i].what))
	}
	return strings.Join(all, "; ")
}

func (s *simulation) count(what counted) { s.counts[what].Add(1) }

// shares are the minimum shares that histories must have judged, in percent.
var shares = []struct {
	what    string
	of      func(c counts) (part, all int64)
	percent int64
}{
	{"decisions were judged", func(c counts) (int64, int64) { return c[decided], c[decided] + c[undecided] }, 75},
	{"binds were judged in full", func(c counts) (int64, int64) { return c[bound], c[bound] + c[unbound] }, 55},
	{"plans were judged by a budget", func(c counts) (int64, int64) { return c[guarded], c[guarded] + c[unguarded] }, 60},
	{"looks at everything were at rest", func(c counts) (int64, int64) { return c[rests] - c[restless], c[rests] }, 95},
	{"looks at everything came before the queue was swept", func(c counts) (int64, int64) { return c[rests] - c[swept], c[rests] }, 95},
}

// tooFew finds histories of which too little was judged.
func (c counts) tooFew(steps int) error {
	var errs []error
	for _, s := range shares {
		if part, all := s.of(c); part*100 < all*s.percent || all == 0 {
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
		decided: 75, undecided: 25, bound: 55, unbound: 45, guarded: 60, unguarded: 40, rests: 100, restless: 5, swept: 5,
	} {
		enough[of] = n
	}
	if err := enough.tooFew(rarely); err != nil {
		t.Error(err)
	}
	for i, of := range counters {
		worse := slices.Clone(enough)
		worse[i] = 0
		if of.steps <= rarely && worse.tooFew(rarely) == nil {
			t.Errorf("not noticed: no %s", of.what)
		}
	}
	for _, of := range []counted{undecided, unbound, unguarded, restless, swept} {
		worse := slices.Clone(enough)
		if worse[of]++; worse.tooFew(rarely) == nil {
			t.Errorf("not found: %v", worse)
		}
	}
	if make(counts, len(counters)).tooFew(rarely) == nil {
		t.Error("a run without any judged plan is not found")
	}
}
