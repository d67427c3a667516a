// Package evict carries out the store's decisions about holds: it writes the claim on the
// asker, deletes the victims (those that wait in Permit are rejected instead), and
// withdraws the claim when the hold ends. It chooses no victims; it decides only when
// to stop trying.
//
// It is a controller with two work queues. The key of one is an asker, that of the other
// a node. A queue never works on one key twice at a time. A reconcile does what can be
// done now. A transient failure returns an error, and the key is tried again after a
// back-off that doubles from 100 ms to 5 s.
//
//	Store.TakeWork ──► the desired state of the asker; later work replaces earlier
//	                                │
//	                      reconcile of the asker
//	      ┌─────────────────────────┼────────────────────────┐
//	a plan to carry out       a hold that lasts        no hold any more
//	      │                         │                        │
//	the claim on the          the claim again          condition False, why, event
//	asker: NodeHeld                                          │
//	      │                                                  │
//	wait for the taint ◄── reconcile of the node: ◄──────────┘
//	      │                tainted while a hold has victims (Store.KeepsOff)
//	      │
//	Store.Commit: is the plan still lawful? ── no ──► nothing; the store ended the hold,
//	      │ yes: the victims                          or the plan of a node-bound pod
//	each victim that runs: DisruptionTarget
//	      │ all are marked; if that took more than one try: Store.Commit again
//	each victim: waiting in Permit ──► rejected
//	             just left Permit ──► spared: a final failure
//	             else DELETE, event
//	      │
//	all gone ──► Store.VictimsDeleted, event on the asker
//	failed   ──► marks cleared, Store.FailPlan; for a node-bound pod without a
//	             deleted victim, where a victim is being bound: Store.AbortPlan
//
// The only DELETE of pods is deletePod in call.go. plan.go decides when (advance), victim.go
// calls it (evict), and the executor of package app rejects a pod in Permit.
//
// Every write is first compared with what exists: a claim, a taint or a mark that exists is
// not written again, and a victim counts as deleted if it is gone, or if another pod has its
// name now. So work that another process began needs no special case.
//
// # Order of writes
//
// The claim is written on the asker before any victim is disrupted, and the
// DisruptionTarget of all victims before the first DELETE. A victim that is too large for
// the condition is deleted without it. So at whatever point the process ends,
// the API server has enough information. Without the claim, no pod was touched. With the
// claim, the next leader takes over the hold, gets the same work, and disrupts those
// victims of the claim that still exist, and no other pods. Every write names the UID of
// its pod, so that it never affects another pod of the same name. A delete
// shortens a grace period that is longer than maxVictimGrace.
//
// The taint is written on the node before any pod is disrupted, too (taint.go). Taints
// are one list that several controllers write, so the write is conditional on the version
// of the node that was read. Every five seconds the executor checks the nodes and removes
// taints without a hold, such as those left by a killed process.
//
// # Failures
//
// Time-outs, 5xx, 429 and version conflicts are transient. Failures that every retry would
// get again (forbidden, invalid, too large) are final.
//
//   - While a victim cannot be marked, none is deleted. Once all are, the store judges the plan
//     again. If the plan is no longer lawful, or has other victims, the marks are cleared.
//   - VictimsRefused and FailPlan name the victims that the API server refused for good, so
//     that the next plans choose others. The first does so at once: a plan that goes on may
//     end with its hold, without FailPlan.
//   - A final failure stops all deletes that have not begun: the plan fails without that
//     victim, so further disruption would be useless.
//   - If no victim was deleted so far, the plan is rolled back: at once after a final
//     failure, after 30 s of transient ones.
//   - If a victim was deleted, the plan is continued for longer: only the failed victim
//     is retried, for up to two minutes. Then the other victims follow, or the plan is
//     given up.
//   - Marked victims that stay get DisruptionTarget False. This happens before FailPlan,
//     because after it another plan may choose the pod.
//   - If the hold ends meanwhile, other victims are chosen for it, or the asker is gone,
//     no further victim of the plan is deleted.
//
// # Leadership
//
// Every call first asks Leading and ends after five seconds, as package leader requires
// of a write that begins at the last moment of a lease. Work is kept when the lease runs
// out, and goes on if it is renewed. Otherwise the scheduler exits, and the store of the
// next leader queues the work of all holds. A release does not overwrite the claim of a
// later hold.
//
// # Limits
//
// Up to 16 askers and as many nodes are reconciled at the same time, and a reconcile makes
// one call at a time. The client limits the calls per second. A release
// with transient failures is retried as long as this process leads: a claim that outlived
// its hold would keep other pods off a node after the next restart.
package evict
