// Package evict carries out the store's decisions about holds: it writes the claim on the
// asker, deletes the victims (those that wait in Permit are rejected instead), and
// withdraws the claim when the hold ends. It makes no decisions itself.
//
//	                 Store.TakeWork
//	                       │  one lane per asker: its work strictly in order
//	   ┌───────────────────┼──────────────────────┐
//	WorkDisrupt        WorkRecord             WorkRelease       (WorkTell: an event, no more)
//	   │                   │                      │
//	the claim on the    the claim again        condition False, why, event
//	asker: NodeHeld                            │
//	   │                                    the taint off the node, if no
//	the taint on the node                   other hold needs it
//	   │
//	Store.Commit: is the plan still lawful? ── no ──► nothing; the store ended the hold
//	   │ yes: the victims
//	each victim: waiting in Permit ──► rejected
//	             just left Permit ──► spared: a final failure
//	             else DisruptionTarget, DELETE, event
//	   │
//	all gone ──► Store.Disrupted, event on the asker
//	failed   ──► marks cleared, Store.GiveUp; for a node-bound pod without a
//	             deleted victim, where a victim is being bound: Store.CallOff
//
// # Order of writes
//
// The claim is written on the asker before any victim is disrupted, and the
// DisruptionTarget of a victim before its DELETE. So at whatever point the process ends,
// the API server has enough information. Without the claim, no pod was touched. With the
// claim, the next leader takes over the hold, gets the same work, and disrupts those
// victims of the claim that still exist, and no other pods. Every write names the UID of
// its pod, so that it never affects another pod of the same name. A victim keeps its own
// grace period.
//
// The taint is written on the node before any pod is disrupted, too (taint.go). Taints
// are one list that several controllers write, so the write is conditional on the version
// of the node that was read. Every five seconds the executor checks the nodes and removes
// taints without a hold, such as those left by a killed process.
//
// # Failures
//
// Transient failures (time-outs, 5xx, 429, version conflicts) are retried with a back-off
// that doubles from 100 ms to 5 s and is deterministic. Failures that every retry would
// get again (forbidden, invalid) are final. A victim counts as success if it is gone, or
// if another pod has its name now.
//
//   - A final failure stops all deletes that have not begun: the plan fails without that
//     victim, so further disruption would be useless.
//   - If no victim was deleted so far, the plan is rolled back: at once after a final
//     failure, after 30 s of transient ones.
//   - If a victim was deleted, the plan is continued for longer: only the failed victim
//     is retried, for up to two minutes. Then the other victims follow, or the plan is
//     given up.
//   - Marked victims that stay get DisruptionTarget False. This happens before GiveUp,
//     because after it another plan may choose the pod.
//   - If the hold ends meanwhile (its release waits behind this work) or the asker is
//     gone, no further victim is deleted.
//
// # Leadership
//
// Every call first asks Leading and ends after five seconds, as package leader requires
// of a write that begins at the last moment of a lease. Work on a hold that lasts is
// dropped when the lease is lost. The next leader, which may be this process, gets it
// again, because a store queues the work of all its holds when it is told that it is no
// longer a standby. A release is kept, because the store no longer has a hold for which
// to queue it. It does not overwrite the claim of a later hold.
//
// # Limits
//
// At most Executor.Parallel calls are in flight, over all askers. A back-off occupies
// none of them. The client limits the calls per second. A release with transient failures
// is retried as long as this process leads: a claim that outlived its hold would keep
// other pods off a node after the next restart.
//
//	executor.go    its dependencies; the loop
//	lane.go        the work of each asker in order
//	claim.go       the condition on the asker
//	taint.go       the taint on the asker's node
//	disruption.go  the victims of a plan, round by round
//	victim.go      one victim
//	call.go        one call: limit, lease, time-out; what errors mean
//	note.go        texts for people
package evict
