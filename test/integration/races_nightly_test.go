//go:build nightly

package integration

// raceRounds is how often pods of default-scheduler race for room on ten nodes.
const raceRounds = 100
