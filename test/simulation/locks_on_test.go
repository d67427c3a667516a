//go:build lockorder

package simulation_test

// watchesLocks tells that all locks of ours watch in which order they are taken.
const watchesLocks = true
