// Package demo is the demonstration of "make run" on a cluster: it applies sample
// manifests, waits until the pods that the queues allow are placed, and prints the queues
// from the scheduler's REST API.
package demo
