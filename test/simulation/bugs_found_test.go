//go:build !race

package simulation_test

import "testing"

// TestPlantedBugsAreFound shows that each invariant can fail: every bug is found
// within the steps of a day.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, bug := range bugs {
		t.Run(bug, func(t *testing.T) {
			p := newProgress()
			for seed := uint64(1); p.steps < dailySteps; seed++ {
				r := live(t, seed, historySteps, bug)
				if p.add(r); r.err != nil {
					t.Logf("seed %d, after %d steps: %.400v", seed, p.steps, r.err)
					return
				}
			}
			t.Errorf("nobody noticed in %d steps", p.steps)
		})
	}
}
