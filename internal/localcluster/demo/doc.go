// Package demo is the demonstration of "make run" on a cluster: it applies sample
// manifests, waits until the pods that the queues allow are placed, and prints and scales
// the sample pods.
package demo
