// Package audit looks whether the scheduler does what it says: nothing here decides
// anything, and nothing waits for it.
//
//	record ── each step ──► Laws    every executed decision is judged again, on the state
//	executor ─ each pod ──►         right after it was committed; only the pods it names go,
//	                                and its asker starts on the node it held
//	informers, inventory ─► Drift   pods, nodes and queues of the store are held against
//	                                what the API server says, a few at a time
//
// Both count what they find, for metrics, log it, and answer a health check with a
// sentence. What is found is a mistake of the scheduler, not of its users.
//
// Laws runs where the record is kept, off the scheduling goroutine; the journal of
// the store is the bounded queue before it, and what was lost there is said.
//
// Drift looks twice: events are late as a rule, and what differs now may not in a
// moment. What differs in the same way after a while, with the same version of the
// object, is drift. A health check asks for the pods of now, and is answered in the
// same way, a few seconds later.
package audit
