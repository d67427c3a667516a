// Package audit compares the scheduler's books with the API server. It decides
// nothing, and nothing waits for it.
//
//	informers, inventory ──► Drift   pods and nodes are compared with the API server, queues
//	                                 with the sums of their pods
//
// Drift counts its findings for metrics, logs them, and answers a health check with a
// sentence. A finding is a mistake of the scheduler, not of its users.
//
// Books adds up the pods of a view and compares the sums with what applications,
// queues, users and groups are charged.
//
// A difference is drift once a second look finds it in the same way, with the same version of
// the object, because events are often late. Looks at everything are a minute apart. A health
// check looks at the pods, too, every few seconds.
package audit
