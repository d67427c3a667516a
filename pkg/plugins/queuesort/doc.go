// Package queuesort adapts the order of the queues to the scheduler's queue: who
// is next (Less), and who may wait there at all (PreEnqueue).
package queuesort
