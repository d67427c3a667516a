// Package record remembers each decision about a pod that needs room and what became of
// it, so that users can ask afterwards: why was my pod killed, why was no room made,
// which pod holds this node.
//
//	store: events, Decisions ──► Record.Run, one goroutine ──► the last decisions ──► readers
//	                                        │                 the last holds that ended
//	                                        └──► a follower, each step in order
//
// The store enters an event while it holds its lock, which costs a
// place in a list. All else happens here: numbers are written out, and
// the follower told. Readers take a lock of the record, never one of the store, and
// get decisions that do not change any more: a later stage of one makes a changed
// copy.
//
// A decision that held a node, or let pods go, is not pushed out by refusals, of
// which a busy cluster has many: each have a list of their own. A refusal that
// repeats the one before it of the same pod, with the same reason, replaces it
// and counts.
package record
