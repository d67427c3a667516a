// Package history has what happened, and what readers have to look at again.
//
//	Events      a bounded list of events for one reader
//	Reports     what users are told of waiting pods, and when
//	Cause       what distinguishes two reasons of one code
//	Dirty       the things of one kind that changed since a reader looked at them
//	WaitCounts  how many pods wait, by state, reason and queue
//
// The types have no lock, no clock and no goroutine. The store calls them under its own
// lock.
package history
