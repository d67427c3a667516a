//go:build !lockorder

package simulation_test

const watchesLocks = false
