//go:build nightly

package victims_test

import "testing"

// TestPlanAgainstOracleNightly is TestPlanAgainstOracle on more and larger worlds.
func TestPlanAgainstOracleNightly(t *testing.T) {
	againstOracle(t, 1_900_000, 9, 1_000_000)
	againstOracle(t, 100_000, 18, 10_000_000)
}
