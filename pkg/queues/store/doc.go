// Package store is the live state of all queues: it takes events (pods, nodes,
// namespaces, configurations, the steps of scheduling cycles), keeps the books,
// and says which pods may go on.
//
// # The way of a pod
//
//	            Upsert, no queue for it
//	  (none) ───────────────────────────► unplaced
//	    │                                    │ a configuration or namespace
//	    │ Upsert, placed                     │ change gives it a queue
//	    ▼                                    ▼
//	 waiting ◄───────────────────────────────┘
//	  │  ▲ ▲ ▲
//	  │  │ │ └── cooling ◄──┐ Gate before its back-off ended
//	  │  │ │  (time, lane)  │
//	  │  │ └────── Gate ── parked ◄── Failed, Forget, lease over
//	  │  │                              ▲      ▲
//	  │  └── Refused (quota) ──┐        │      │
//	  │ fill: next in the order│        │      │
//	  ▼                        │        │      │
//	admitted ──────────────────┴────────┘      │
//	  │ Assume                                 │
//	  ▼                                        │
//	assumed ────────────── Forget ─────────────┘
//	  │ Upsert with a node
//	  ▼
//	 bound ◄── Upsert with a node, from any state (restart, or bound by others)
//
// Delete, or a terminal phase, leads from every state to (none) and gives back
// what the pod was charged.
//
// waiting pods are in the order (package order) and gated in the scheduler's
// queue; their group may be blocked by a quota. admitted pods have a slot of
// the window: they pass the gate. parked pods failed in a cycle; the
// scheduler's own hints bring them back. Forget and the end of a lease let a pod
// cool at once, so that it comes back by itself. unplaced, parked and cooling
// pods are out of the order.
//
// The scheduler brings parked pods back in no particular order, one by one,
// though it was one event that moved them all. So none of them is admitted by
// Gate itself: [Store.TakeActivations] admits the first of the order, once the
// scheduler has finished. An admitted pod for which Gate is asked twice is back
// from a cycle that ended with an error; it has failed. Nor does Assume admit
// anybody in the place of the pod that goes to a node: the scheduler waits for it.
// The next event does, or TakeActivations.
//
// Of pods that are alike, one that found no node speaks for all; see twins.go.
// Of the pods of a gang, one that asks for a Hard one does; see gang.go. Those of a
// PodGroup are let through together, and parked until then; see podgroup.go.
//
// Assumptions: events of one pod arrive in the order the API server made them,
// but may be missing, late or repeated with respect to the scheduler's own
// steps; what the informer says is only ever added or removed by Upsert and
// Delete, so a step for a pod that is gone changes nothing. What events say of an
// assumed pod before its bind is seen counts if the bind fails.
//
// Pods of no queue are known for what they use of nodes, and some because room may
// be made for them; what becomes of pods that can run on one node only is drawn in
// required.go, what becomes of other askers in hold.go.
//
// # Books
//
// A pod is charged with what it requested when it was admitted or bound; the
// same vector is given back. allocated counts assumed and bound pods, admitted
// those with a slot, pending all asks. Books hold at every queue from the leaf
// to root, and at the limits of users and groups. [Store.Check] verifies the
// store against itself, [Store.Recount] against a listing of pods.
//
// # Readers
//
// What changed is marked for one reader, who fetches it in small bites; see
// register.go and package inventory. What was decided about askers is in a journal;
// see journal.go and package record. What happened is noted for yet another reader;
// see chronicle.go and package eventlog.
//
// # Locks
//
// One mutex guards everything but the sort keys and the snapshot that was read last,
// which are read without a lock. Who takes it, by lock, charges the pods that Assume
// left to be charged. No method calls out while it holds the mutex:
// pods that may go on are collected and handed out by [Store.TakeActivations];
// [Store.Wake] tells the one goroutine that takes them.
package store
