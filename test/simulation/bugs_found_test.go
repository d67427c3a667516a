//go:build !race

package simulation_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
)

// TestPlantedBugsAreFound shows that invariants can fail: every planted bug is found
// by its own invariant within ten times the daily steps; nearly all need much less.
// Complaints of other invariants before are ignored.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, bug := range bugs {
		t.Run(bug.name, func(t *testing.T) {
			p, other, complaint := newProgress(), "", regexp.MustCompile(bug.complaint)
			for seed := slices.Max(append(bug.from, 1)); p.steps < 10*dailySteps; seed++ {
				r := live(t, seed, historySteps, bug.name)
				p.add(r)
				switch said := fmt.Sprint(r.err); {
				case r.err == nil:
				case complaint.MatchString(said):
					t.Logf("seed %d, after %d steps: %.400s", seed, p.steps, said)
					return
				default:
					other = said
				}
			}
			t.Errorf("not found in %d steps; the last complaint: %s", p.steps, other)
		})
	}
}
