//go:build nightly

package simulation_test

// dailySteps are lived every night.
const dailySteps = 5_000_000
