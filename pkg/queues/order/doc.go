// Package order says which ask is next: it keeps every ask that may run now in the exact
// hierarchical order and hands out the first one.
//
// The order is a walk from root to an ask, the best child first at each level:
//
//	root ─► queue ─► ... ─► leaf ─► application ─► ask
//	     [CompareQueues]          [CompareApps]  [CompareAsks]
//
// Each level is a heap, so that finding the next ask of 100,000 in 5,000 queues
// costs a few comparisons a level, and so does telling the [Index] that a queue
// uses more or less than before. Whether a queue is below its guarantee depends on
// what its next ask requests, so each queue knows that ask (next.go). The criteria are numbered in compare.go; they
// end in a name or a UID, so the order is total and does not depend on the
// order of calls.
//
// Asks of one leaf that request the same, of applications of one [Class], are a
// [Group]: a quota that refuses one of them refuses all, so a group is blocked
// and unblocked as one, however many applications wait in it. A blocked group
// takes no part in the order: its priority does not pull its queue forward,
// because nothing of it could run. Below a leaf there is therefore a heap of
// groups, each a heap of the applications' batches, each a heap of asks; it
// finds the same first ask as the drawing above.
//
// Asks of one application that request the same and are of one kind, a word of
// the owner's choice, can be closed: they leave the order, together and at once,
// and come back so.
//
// The package has no lock and no clock; the store owns an Index and guards it.
package order
