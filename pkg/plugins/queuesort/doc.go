// Package queuesort is the plugin that decides which pod is next: it orders the
// scheduler's queue (QueueSort) and lets pods of queues into it a window at a time
// (PreEnqueue). The order itself is kept by the queue store.
package queuesort
