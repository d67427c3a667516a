//go:build !nightly && race

package simulation_test

// dailySteps are fewer with the race detector, with which everything is ten times
// slower. Planted bugs are left out: they would take too many.
const dailySteps = 1_000
