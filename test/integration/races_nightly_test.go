//go:build nightly

package integration

// races is how often pods of default-scheduler race for the room of a DaemonSet pod.
const races = 1000

// beside is how often room is made beside upstream's scheduler.
const beside = 1000

// failovers is how often the leader is killed in the middle of a preemption.
const failovers = 50
