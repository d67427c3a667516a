// Package leader tells whether this process holds the scheduler's lease.
//
// Upstream builds the plugins and runs the informers on every replica, and only the scheduling
// loop waits for the lease. So whatever a plugin does outside a scheduling cycle (a pod
// condition, an event, a delete) must ask first:
//
//	if !gate.Leading() {
//		return // a standby only keeps its store up to date
//	}
//
// Upstream does not tell plugins whether it leads: the elector and its callbacks are
// inside app.Run. The resource lock can be passed in, so Watch wraps it and derives
// the answer from its calls:
//
//	elector ──► Watch(lock, gate, validity) ──► lease object
//	                 │
//	                 └─ our Create or Update succeeded   leading, for validity
//	                    Get shows another holder, none,
//	                    or no lease; we release it       not leading
//	                    any call fails, or none comes    as before, until validity ends
//
// Assumptions, each on the safe side:
//
//   - Validity counts from before the write was sent, and is at most the lease duration in
//     it. Others wait that long after they have seen the write. With upstream's renew deadline
//     (10s) and 15s of lease, a write begun at the last permitted moment has 5s to arrive.
//   - The end of validity is checked on the monotonic and on the wall clock, so a
//     suspended machine wakes up not leading although its monotonic clock stood still.
//   - The gate may close while the elector still tries to renew. It opens again with the next
//     renewal; if none comes the process ends.
//   - A process leads once. If it sees that the lease is no longer its own, all its
//     later reads fail, so the elector gives up and the process ends.
package leader
