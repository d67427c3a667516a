//go:build !nightly

package integration

// races is how often pods of default-scheduler race for the room of a DaemonSet pod.
const races = 20

// beside is how often room is made beside upstream's scheduler.
const beside = 20

// failovers is how often the leader is killed in the middle of a preemption.
const failovers = 3
