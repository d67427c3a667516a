//go:build !nightly && race

package simulation_test

// dailySteps are fewer with the race detector, which makes everything ten times slower.
// Planted bugs are left out, because they would take too many steps.
const dailySteps = 1_000
