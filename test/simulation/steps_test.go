//go:build !nightly && !race

package simulation_test

// dailySteps are the steps of every test run.
const dailySteps = 50_000
