//go:build nightly

package victims_test

import "testing"

// The tests of every day on more and larger worlds.

func TestPlanAgainstOracleNightly(t *testing.T) {
	againstOracle(t, 1_900_000, 9, 1_000_000)
	againstOracle(t, 100_000, 17, 10_000_000) // at most 16 on a node: beyond, plans need not be exhaustive
}

func TestClosedSystemsSettleNightly(t *testing.T) { closedSystems(t, 100_000, 1_000_000) }

func TestLargeWorldsNightly(t *testing.T) { largeWorlds(t, 20_000, 1_000_000) }
