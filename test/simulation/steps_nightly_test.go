//go:build nightly

package simulation_test

// dailySteps are the steps of every nightly run.
const dailySteps = 5_000_000
