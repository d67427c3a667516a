// Package eventlog keeps what happened for readers: the last records in a ring, in
// YuniKorn's terms (type, change, detail), numbered without a gap from 0.
//
// Scheduling must not pay for that. The store notes what it does in a history, a few
// words each time ([store.Chronicle]). A goroutine here takes the whole history several
// times a second, as does a reader that wants the newest records, and makes records from
// it (records.go, tree.go). No lock of the store is held meanwhile.
//
//	store ── notes ──► TakeChronicle ──► records ──► ring ──► Range, Next
//	                 (lock of the store,        (lock of the log)
//	                  a swap of buffers)
//
// Readers that follow keep only their place in the ring here. A reader that the ring
// overtakes is told so, and nothing waits for it.
//
// What was there before the scheduler had seen everything did not happen now and has
// no records: a restart does not repeat the cluster.
package eventlog
