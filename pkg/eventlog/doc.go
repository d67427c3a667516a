// Package eventlog keeps what happened for readers: the last records in a ring, in
// YuniKorn's terms (type, change, detail), numbered without a gap from 0.
//
// Scheduling must not pay for that. The store adds what it does to its history, a few
// words each time ([output.Event]). A goroutine here takes the events several times a
// second, as does a reader that wants the newest records, and makes records of them
// (records.go, tree.go). The lock of the store is held only while the list of events is
// exchanged for an empty one.
//
//	store ── events ──► EventReader.Take ──► records ──► ring ──► Range
//	                  (lock of the store)       (lock of the log)
//
// Readers that follow keep only their place in the ring here. A reader that the ring
// overtakes is told so, and nothing waits for it.
//
// Objects that existed at the start have no records: a restart does not repeat the cluster.
package eventlog
