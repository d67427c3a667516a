// Package audit compares the scheduler's books with the API server. It decides
// nothing, and nothing waits for it.
//
//	informers, inventory ──► Drift   pods, nodes and queues of the store are compared
//	                                 with what the API server says, a few at a time
//
// Drift counts what it finds, for metrics, logs it, and answers a health check with a
// sentence. A finding is a mistake of the scheduler, not of its users.
//
// Books adds up the pods of a view and compares the sums with what applications,
// queues, users and groups are charged.
//
// Drift looks twice, because events are often late. What differs in the same way
// after a while, with the same version of the object, is drift. A health check asks
// for the pods of now, and is answered in the same way, a few seconds later.
package audit
