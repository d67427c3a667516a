//go:build !nightly && !race

package simulation_test

// dailySteps are lived whenever tests are run.
const dailySteps = 50_000
