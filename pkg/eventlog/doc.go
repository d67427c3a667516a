// Package eventlog is what happened, for those who look: the last records in a ring,
// in YuniKorn's terms (type, change, detail), numbered without a gap from 0.
//
// Who decides must not pay for that. The store notes what it does in a chronicle, a
// few words each time ([store.Chronicle]); a goroutine here takes the whole chronicle
// several times a second, and so does who wants the newest records, and makes records
// from it (records.go, tree.go). No lock of the store is held meanwhile.
//
//	store ── notes ──► TakeChronicle ──► records ──► ring ──► Range, Next
//	                 (lock of the store,        (lock of the log)
//	                  a swap of buffers)
//
// Readers that follow keep nothing here but their place in the ring: who is so slow
// that the ring overtakes it is told so, and nobody waits for it.
//
// What was there before the scheduler had seen everything did not happen now and has
// no records: a restart does not repeat the cluster.
package eventlog
