//go:build nightly

package victims_test

import "testing"

// The tests of every day on more and larger worlds.

// TestPlanAgainstOracleNightly takes all its worlds with up to 16 candidates on a
// node. One core is done with 10,000 of them in 8 to 10 s, so it needs half an hour
// for all, and two cores half of that.
func TestPlanAgainstOracleNightly(t *testing.T) {
	againstOracle(t, 2_000_000, 1_000_000, upToSixteen, sixteen)
}

func TestClosedSystemsSettleNightly(t *testing.T) { closedSystems(t, 100_000, 1_000_000) }

func TestManyAlikePodsOnManyNodesNightly(t *testing.T) { sparseWorlds(t, 50_000, 1_000_000) }

func TestLargeWorldsNightly(t *testing.T) { largeWorlds(t, 20_000, 1_000_000) }
