// Package reservations is the ledger of holds. A hold keeps a node for an asker while
// capacity is freed there; the ledger decides which pods may use the node in the
// meantime.
//
// # States of a hold
//
//	           Place, victims to go          the last VictimGone
//	(none) ───────────────────────► clearing ───────────────────► clear
//	   │                               │                            │
//	   └──── Place, no victims ────────┼───────────────────────────►│
//	                                   │ End                        │ End
//	                                   ▼                            ▼
//	                          ended: bound, deleted, superseded, node gone,
//	                          node unschedulable, timed out, given up
//
// A hold in either state times out: the store ends those that [Ledger.Overdue] returns.
// The time counts from the begin of the hold while no pod was chosen, then from when victims
// were last told to go, and once none is left from when the last one was gone.
// [Hold.TimeFrom] has the rule.
//
// Assumptions: an asker has at most one hold. The caller reports every victim that is
// gone, at least once. The caller writes what a hold needs to survive a restart on the
// asker, and after a restart passes it to Place with the original Since.
//
// The package has no lock and no clock. The store owns a Ledger and guards it with its
// lock.
package reservations
