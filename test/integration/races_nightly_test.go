//go:build nightly

package integration

// races is how often pods of default-scheduler race for the room of a DaemonSet pod.
const races = 1000
