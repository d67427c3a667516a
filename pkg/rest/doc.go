// Package rest serves what is: read-only HTTP in the form of YuniKorn's REST
// interface (/ws/v1), so that its scripts and its web pages work unchanged. What is
// served and what is not, and why, is in docs/rest.md.
//
// Queues, nodes, applications and pods of an answer are read from one view of the
// inventory, so they are of one moment. Decisions, ended holds and events come from logs of
// their own, and explanations from the store. The health checks run on their own goroutine;
// readers get the last result.
package rest
