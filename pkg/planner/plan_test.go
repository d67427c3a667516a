package planner_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestPlanAgainstOracle compares Plan with brute force on random worlds.
func TestPlanAgainstOracle(t *testing.T) {
	againstOracle(t, 20_000, 1, kindOfWorld{"generate(%d, 8)", func(seed uint64) *model { return generate(seed, 8) }}, everyDay)
}

// kindOfWorld draws random worlds by their seed; name is the format of the call that
// draws a world again.
type kindOfWorld struct {
	name string
	draw func(seed uint64) *model
}

// upToSixteen are worlds with at most as many candidates as are considered exactly. In
// every other world most pods are candidates, on one node.
var upToSixteen = kindOfWorld{"upToSixteen.draw(%d)", func(seed uint64) *model {
	if seed%2 == 0 {
		return generate(seed, 16)
	}
	return generateCrowd(seed, 17)
}}

// sixteen are the minimal frequencies of kinds of worlds, in thousandths, among
// upToSixteen.
var sixteen = map[string]uint64{
	"candidates 10": 15, "candidates 12": 10, "candidates 14": 5, "candidates 16": 5,
	"refused": 300, "held": 50, "victims 1": 80, "victims 2": 40, "victims 3": 5,
	"opted out": 10, "violations": 10, "victims elsewhere": 2,
	"stopped by law 2": 100, "stopped by law 3": 40, "stopped by law 4": 40, "stopped by law 5": 40, "stopped by law 6": 40,
	"stopped by law 7": 20, "stopped by P3": 40, "stopped by preemption.policy disabled": 20,
}

// TestPlanAgainstOracleAmongMany uses a few of the worlds of the nightly test.
func TestPlanAgainstOracleAmongMany(t *testing.T) {
	againstOracle(t, 2_000, 1, upToSixteen, sixteen)
}

// againstOracle plans in the worlds of the seeds from first on, on all cores. Shares are
// the minimal frequencies of kinds of worlds, in thousandths.
func againstOracle(t *testing.T, worlds, first uint64, kind kindOfWorld, shares map[string]uint64) {
	t.Helper()
	var next atomic.Uint64
	var wrong atomic.Bool
	var work sync.WaitGroup
	var mu sync.Mutex
	all := waitCounts{}
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			mine := waitCounts{}
			for !wrong.Load() {
				seed := first + next.Add(1) - 1
				if seed >= first+worlds {
					break
				}
				m := kind.draw(seed)
				o := newOracle(m)
				want, found := o.best()
				if err := o.check(want, found, real, seed); err != nil {
					wrong.Store(true)
					t.Errorf(kind.name+": %v\n%s", seed, err, m)
				}
				mine.count(o, want, found)
			}
			mu.Lock()
			defer mu.Unlock()
			all.add(mine)
		})
	}
	work.Wait()
	all.require(t, worlds, shares)
	t.Log(all)
}

// waitCounts counts kinds of worlds, to notice a generator that makes worlds without variety.
type waitCounts map[string]uint64

func (c waitCounts) count(o *oracle, best choice, found bool) {
	switch {
	case !found:
		c["refused"]++
	case len(best.victims) == 0:
		c["held"]++
	default:
		c[fmt.Sprintf("victims %d", min(len(best.victims), 3))]++
	}
	c[fmt.Sprintf("candidates %d", o.candidates)]++
	if best.cost.optedOut > 0 {
		c["opted out"]++
	}
	if best.cost.violations > 0 {
		c["violations"]++
	}
	if slices.ContainsFunc(best.victims, func(i int) bool { return o.pods[i].node != best.node }) {
		c["victims elsewhere"]++
	}
	for law := range o.stoppedBy {
		c["stopped by "+string(law)]++
	}
}

func (c waitCounts) add(d waitCounts) {
	for what, n := range d {
		c[what] += n
	}
}

// everyDay is the minimal frequency of kinds of worlds, in thousandths, among small ones.
var everyDay = map[string]uint64{
	"refused": 300, "held": 50, "victims 1": 80, "victims 2": 20, "victims 3": 2, "candidates 5": 10, "candidates 7": 2, "candidates 8": 2,
	"opted out": 10, "violations": 10, "victims elsewhere": 5,
	"stopped by law 2": 40, "stopped by law 3": 40, "stopped by law 4": 40, "stopped by law 5": 40, "stopped by law 6": 40,
	"stopped by law 7": 20, "stopped by P3": 40, "stopped by preemption.policy disabled": 20, "stopped by foreign pod": 40,
	"stopped by pod of a DaemonSet": 20, "stopped by static pod": 20, "stopped by leaving already": 20, "stopped by being bound": 20,
}

// require fails unless there was at least the given share, in thousandths, of each kind
// of world.
func (c waitCounts) require(t *testing.T, worlds uint64, shares map[string]uint64) {
	t.Helper()
	for what, least := range shares {
		if c[what]*1000 < least*worlds {
			t.Errorf("%d of %d worlds have %q, want %d in 1000", c[what], worlds, what, least)
		}
	}
}
