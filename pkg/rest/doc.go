// Package rest serves what is: read-only HTTP in the form of YuniKorn's REST
// interface (/ws/v1), so that its scripts and its web pages work unchanged.
// Answers are made from one snapshot, without a lock of the store; only the health
// check, which compares the books with the pods, takes it, and rarely.
//
// Served so far: the queues of the only partition, default, and the health check.
package rest
