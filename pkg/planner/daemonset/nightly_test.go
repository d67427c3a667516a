//go:build nightly

package daemonset_test

import "testing"

// The daily test on more and larger nodes.

func TestPlanAgainstOracleNightly(t *testing.T) {
	againstOracle(t, 1_000_000, 9, 1_000_000)
	againstOracle(t, 100_000, 13, 10_000_000)
}
