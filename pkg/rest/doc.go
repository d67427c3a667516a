// Package rest serves what is: read-only HTTP in the form of YuniKorn's REST
// interface (/ws/v1), so that its scripts and its web pages work unchanged.
// Every answer is made from one snapshot; no request takes a lock of the store.
//
// Served so far: the queues of the only partition, default.
package rest
