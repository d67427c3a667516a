package simulation_test

import (
	"errors"
	"fmt"
	"testing"
)

// counted is a kind of event that histories count.
type counted int

const (
	cycles          counted = iota // scheduling cycles
	decided                        // decisions that were judged
	undecided                      // decisions that could not be judged
	bound                          // binds with a node and queues that were judged
	unbound                        // binds where another client had touched one of these
	rests                          // rests that were checked
	restless                       // rests where PodGroups kept changing
	swept                          // rests after a flush of the scheduler's queue
	guarded                        // plans that were judged by a budget
	unguarded                      // plans of a budget that had changed
	besideNominated                // plans that were judged beside nominated pods
	lost                           // rooms that were made and lost
	besideBound                    // pods that the neighbour bound
	asked                          // pods that wait at rest, each tried with a plan
	rooms                          // pods that got free room, each checked against the order
	underMax                       // rooms on nodes with room for both pods, where a max has none
	keptFirst                      // nodes refused because a DaemonSet pod goes first there
	lingered                       // pods that the hostile tenant deleted and that stay for longer than a hold
	shortened                      // pods that were deleted with a long grace period and preempted then
	forgeries                      // pods for one node that were told and are of no DaemonSet
	moved                          // pods with a node that the hostile tenant made name another queue
	fullOfQueues                   // looks at queues of which rules may make no more
	originated                     // plans that take originators, each compared with others
	unhealthy                      // plans that take pods which run and are not ready, of a budget
	undeletable                    // deletes that were refused because the pod is too large
	invented                       // types that no node offers, of pods that were told
	unwanted                       // pods that were told that no node is wanted for them
	wantedAgain                    // pods for which that was taken back
	heldTainted                    // holds of nodes that got a taint which the asker does not tolerate
	heldRelabelled                 // holds of nodes that lost the label which the asker requires
	heldGone                       // holds of nodes that were deleted
	heldForOwn                     // nodes that are held while pods of the asker's own namespace leave
	besideOwn                      // answers of the filter about nodes of which all holders wait for pods of their own
	keptBesideOwn                  // those of them that keep room for the holders
	saidHeld                       // answers of the filter that a node is held
	saidFirst                      // answers of the filter that a node has room for another pod first
	crowded                        // plans that wait for room beside pods of the same queue
	groupTimedOut                  // holds of PodGroups that timed out
	kindsCounted
)

// counts is how many of each kind there were.
type counts [kindsCounted]int64

func (c counts) String() string {
	return fmt.Sprintf("%d scheduling cycles; judged %d decisions and %d not, %d binds and %d not in full; %d rests, %d of them without rest and %d after the queue was swept; %d that waited then were checked for victims; %d times room was given that may belong to another pod, %d of them under a max; %d nodes were left to pods that can run there only; judged %d plans by budgets and %d not; %d beside pods that are nominated; %d rooms were lost; %d bound by the neighbour; %d deleted by the tenant that stay, %d of them preempted, %d times a pod of no DaemonSet; %d plans took originators, %d took pods of a budget that are not ready; %d pods with a node moved to another queue, %d times rules could make no more queues; %d deletes of pods that are too large; %d invented types; %d pods were told that no node is wanted, %d of them the opposite later; %d held nodes were tainted, %d lost a label, %d were deleted; %d were held for pods of their own; %d answers of the filter beside such holds, %d of them refusals; it said %d times that a node is held and %d times that another pod goes first; %d wait beside others of their queue; %d holds of PodGroups timed out",
		c[cycles], c[decided], c[undecided], c[bound], c[unbound], c[rests], c[restless], c[swept], c[asked], c[rooms], c[underMax], c[keptFirst], c[guarded], c[unguarded], c[besideNominated], c[lost], c[besideBound], c[lingered], c[shortened], c[forgeries], c[originated], c[unhealthy], c[moved], c[fullOfQueues], c[undeletable], c[invented], c[unwanted], c[wantedAgain], c[heldTainted], c[heldRelabelled], c[heldGone], c[heldForOwn], c[besideOwn], c[keptBesideOwn], c[saidHeld], c[saidFirst], c[crowded], c[groupTimedOut])
}

func (s *simulation) count(what counted) { s.counts[what].Add(1) }

// counted returns the current counts.
func (s *simulation) counted() counts {
	var c counts
	for i := range s.counts {
		c[i] = s.counts[i].Load()
	}
	return c
}

// shares are the minimum shares that histories must have judged, in percent.
var shares = []struct {
	what    string
	of      func(c *counts) (part, all int64)
	percent int64
}{
	{"decisions were judged", func(c *counts) (int64, int64) { return c[decided], c[decided] + c[undecided] }, 75},
	{"binds were judged in full", func(c *counts) (int64, int64) { return c[bound], c[bound] + c[unbound] }, 55},
	{"plans were judged by a budget", func(c *counts) (int64, int64) { return c[guarded], c[guarded] + c[unguarded] }, 60},
	{"looks at everything were at rest", func(c *counts) (int64, int64) { return c[rests] - c[restless], c[rests] }, 95},
	{"looks at everything came before the queue was swept", func(c *counts) (int64, int64) { return c[rests] - c[swept], c[rests] }, 95},
}

// leastCounts are counted at least once in every set of histories, or in those of so many steps.
// Without them, the daily histories could have settings that never exercise a check, and
// would show nothing.
var leastCounts = []struct {
	what  string
	of    counted
	steps int
}{
	{"room was checked against the order", rooms, 0},
	{"pod that waits at rest was tried with a plan", asked, 0},
	{"node was left to a pod that can run there only", keptFirst, 0},
	{"room was given under a max", underMax, 1_000_000},
	{"pod was tried beside a hold for pods of its own namespace", besideOwn, 0},
	{"room was kept beside a hold for pods of its own namespace", keptBesideOwn, 0},
	{"filter said that a node is held", saidHeld, 0},
	{"filter said that another pod goes first", saidFirst, 0},
	{"pod waited for room beside another one of its queue", crowded, 0},
	{"plan was judged by a budget", guarded, 0},
	{"plan was judged beside pods that are nominated", besideNominated, 0},
	{"room was made and lost", lost, 0},
	{"pod was bound by the neighbour", besideBound, 0},
	{"pod of the hostile tenant stayed", lingered, 0},
	{"pod named a DaemonSet that does not exist", forgeries, 0},
	{"plan took originators", originated, 0},
	{"pod with a node named another queue", moved, 0},
	{"rule made as many queues as it may", fullOfQueues, 0},
	{"plan took a pod of a budget that is not ready", unhealthy, 0},
	{"delete of a pod that is too large", undeletable, 200_000}, // 0 to 3 in 50,000 steps
	{"invented type", invented, 0},
	{"pod was told that no node is wanted", unwanted, 0},
	{"pod was told later that a node is wanted", wantedAgain, 0},
	{"node was held for pods of the asker's own", heldForOwn, 0},
	{"hold of a PodGroup timed out", groupTimedOut, 200_000},
	{"held node was deleted", heldGone, 1_000_000},
	{"held node was tainted", heldTainted, 1_000_000},
	{"held node lost a label", heldRelabelled, 1_000_000},
	{"pod that stays was preempted", shortened, 1_000_000},
}

// tooFew finds histories of which too little was judged.
func (c *counts) tooFew(steps int) error {
	var errs []error
	for _, s := range shares {
		if part, all := s.of(c); part*100 < all*s.percent || all == 0 {
			errs = append(errs, fmt.Errorf("%d of %d %s, want %d %%", part, all, s.what, s.percent))
		}
	}
	for _, f := range leastCounts {
		if c[f.of] == 0 && steps >= f.steps {
			errs = append(errs, fmt.Errorf("no %s", f.what))
		}
	}
	return errors.Join(errs...)
}

// TestTooLittleJudgedIsNoticed checks counts that are just enough, and then counts with
// one less.
func TestTooLittleJudgedIsNoticed(t *testing.T) {
	enough := counts{decided: 75, undecided: 25, bound: 55, unbound: 45, guarded: 60, unguarded: 40, rests: 100, restless: 5, swept: 5}
	for _, f := range leastCounts {
		enough[f.of] = max(enough[f.of], 1)
	}
	const steps = 1_000_000
	if err := enough.tooFew(steps); err != nil {
		t.Error(err)
	}
	for _, worse := range []counted{undecided, unbound, unguarded, restless, swept} {
		c := enough
		if c[worse]++; c.tooFew(steps) == nil {
			t.Errorf("not found: %v", c)
		}
	}
	for _, f := range leastCounts {
		c := enough
		if c[f.of] = 0; c.tooFew(steps) == nil {
			t.Errorf("not noticed: no %s", f.what)
		}
	}
	if (&counts{}).tooFew(steps) == nil {
		t.Error("a run without any judged plan is not found")
	}
}
