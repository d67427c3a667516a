//go:build nightly

package planner_test

import "testing"

// The daily tests on more and larger cases.

// TestPlanAgainstOracleNightly uses only cases with up to 16 candidates on a node. One core needs 8 to
// 10 s for 10,000 of them, so half an hour for all; two cores need half of that.
func TestPlanAgainstOracleNightly(t *testing.T) {
	againstOracle(t, 2_000_000, 1_000_000, upToSixteen, sixteen)
}

func TestClosedSystemsConvergeNightly(t *testing.T) { closedSystems(t, 100_000, 1_000_000) }

func TestManyAlikePodsOnManyNodesNightly(t *testing.T) { sparseCases(t, 50_000, 1_000_000) }

func TestLargeCasesNightly(t *testing.T) { largeCases(t, 20_000, 1_000_000) }
