// Package demo is the demonstration of "make run" on a cluster: it applies sample
// manifests, waits until the pods that the queues allow are placed, and prints the queues
// from the scheduler's REST API.
//
// Guided tour: manifests.go reads and applies the objects and remembers which of them it
// made, expect.go knows how many pods must be placed and watches them, queues.go reads
// and prints the queues, pods.go lists the pods and scales a Deployment.
package demo
