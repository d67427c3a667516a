// Package reservations is the ledger of holds: which node is kept for which asker while
// room is being made there, and which pods may use the node meanwhile.
//
// # The way of a hold
//
//	           Place, victims to go          the last VictimGone
//	(none) ───────────────────────► clearing ───────────────────► clear
//	   │                               │                            │
//	   └──── Place, no victims ────────┼───────────────────────────►│
//	                                   │ End                        │ End, or overdue
//	                                   ▼                            ▼
//	                          ended: bound, deleted, superseded, node gone,
//	                          node unschedulable, timed out, given up
//
// A hold that is clearing does not time out: victims have their grace period.
// The time-out counts from the moment the hold is clear.
//
// Assumptions: an asker has at most one hold; the caller tells of every victim
// that is gone, once or more; what a hold needs to survive a restart is written
// on the asker by the caller, and Place takes it up again with its old Since.
//
// The package has no lock and no clock; the store owns a Ledger and guards it.
package reservations
