// Package order determines the next ask: it keeps every ask that may run now in the exact
// hierarchical order and returns the first one.
//
// The order is a walk from root to an ask that takes the best child at each level:
//
//	root ─► queue ─► ... ─► leaf ─► application ─► ask
//	      compareQueues           compareApps  [CompareAsks]
//
// Each level is a heap. Finding the next ask of 100,000 in 5,000 queues therefore costs a
// few comparisons per level, and so does a change of a queue's usage in the [Index].
// Whether a queue is below its guarantee depends on what its next ask requests, so each
// queue stores that ask (next.go). The criteria are numbered in compare.go. They end in a
// name or a UID, so the order is total and does not depend on the order of calls.
//
// Asks of one leaf with the same request, of applications of one [Class], form an [AskGroup].
// A quota that refuses one of them refuses all, so a group is blocked and unblocked as a
// whole, however many applications wait in it. A blocked group is not in the order: its
// priority does not raise that of its queue, because none of its asks could run. Below a
// leaf there is therefore a heap of groups, each a heap of the applications' batches,
// each a heap of asks. Its first ask is the same as in the drawing above.
//
// Asks of one application with the same request and hash can be closed. The owner chooses the
// hash, as that of an equivalence class. Closed asks leave the order, and return to it, together.
//
// The package has no lock and no clock. The store owns an Index and guards it with its
// lock.
package order
