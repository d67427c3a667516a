// Package evict carries out what the store decided about holds: it writes the
// claim on the asker, lets the victims go, and takes the claim back when the
// hold ends. It decides nothing itself.
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
//	             just left Permit ──► spared: a failure that is final
//	             else DisruptionTarget, DELETE, event
//	   │
//	all gone ──► Store.Disrupted, event on the asker
//	not so   ──► marks taken back, Store.GiveUp; for a pod that can run there only,
//	             where nobody went and one is being bound: Store.CallOff
//
// # What is written when
//
// The claim is on the asker before anybody is disrupted, and a victim has its
// DisruptionTarget before its DELETE. So whenever the process ends, the API
// server says enough: without the claim nobody was touched; with it the next
// leader takes the hold up, is given the same work, and disrupts those victims
// of the claim that are still there, and nobody else. Every write names the UID
// of its pod, so that another pod of the same name is never hit. The grace period
// of a victim is its own.
//
// The taint is on the node before any pod is disrupted, too (taint.go). Taints are one
// list that several controllers write, so it is written against the version of the node
// that was read. Each look at the nodes, every five seconds, takes taints back for which
// there is no hold, such as those that a killed process has left.
//
// # When something fails
//
// Whatever may pass (time-outs, 5xx, 429, conflicts of version) is tried again
// with a back-off that doubles from 100 ms to 5 s and has no chance in it. What
// would be answered the same way again (forbidden, invalid) is final. A victim
// that is gone, or whose name another pod has by now, counts as success.
//
//   - A final failure stops what is not on its way yet: without that victim the
//     plan comes to nothing, and further disruption would be for nothing.
//   - If nobody has left so far the plan is rolled back at once; after 30 s where
//     the failure may pass.
//   - If somebody has, the plan is worth more patience: the failed victim alone is
//     tried for two minutes, then the others go on, or the plan is given up.
//   - Who was marked and stays gets DisruptionTarget False. This comes before
//     GiveUp, after which another plan may choose the pod.
//   - If the hold ends meanwhile (its release waits behind this work) or the asker
//     is gone, nobody else goes.
//
// # Leading
//
// Every call asks Leading first and ends after five seconds, which package leader
// requires of a write begun at the last moment of a lease. Work on a hold that
// lasts is dropped when the lease is lost: whoever leads next, this process
// included, is given it again, because a store queues the work of all its holds
// anew when it is told that it is no standby any more. A release is
// kept, for the store has no hold any more to queue it for; it is not written
// over the claim of a later hold.
//
// # Bounds
//
// At most Executor.Parallel calls are in flight, over all askers; a back-off
// occupies none of them. How many there are in a second is the client's matter.
// A release that fails in a way that may pass is tried for as long as this
// process leads: a claim that outlived its hold would keep a node from others
// after the next restart.
//
//	executor.go    what it needs; the loop
//	lane.go        one asker after the other's work
//	claim.go       the condition on the asker
//	taint.go       the taint on its node
//	disruption.go  the victims of a plan, round by round
//	victim.go      one victim
//	call.go        one call: bound, lease, time limit; what errors mean
//	note.go        what people read
package evict
