// Package store is the live state of all queues. It takes events (pods, nodes,
// namespaces, configurations, the steps of scheduling cycles), does the accounting, and
// decides which pods may be scheduled.
//
// # States of a pod
//
//	Queued: a queue takes it
//	    from NoQueue
//	GroupBlocked: it is first in the order, and its PodGroup cannot start
//	    from Queued
//	Queued: its PodGroup may start
//	    from GroupBlocked
//	Admitted: it is first in the order, a slot is free and every quota allows it
//	    from Queued
//	Admitted: a plan may be made for it, or it is tried again on the node that it holds
//	    from Queued, Unschedulable, BackingOff
//	Scheduling: Gate
//	    from Admitted
//	Queued: a quota refused it, others go first, or its PodGroup cannot start any more
//	    from Admitted, Scheduling
//	Unschedulable: a cycle found no node or ended with an error, its lease ended, or a node is held for it
//	    from Queued, GroupBlocked, Admitted, Scheduling, BackingOff
//	Queued: Gate, or its PodGroup or another pod makes it try again
//	    from Unschedulable
//	BackingOff: it comes back at a time
//	    from Unschedulable
//	Queued: its back-off ended, or no other pod can go on
//	    from BackingOff
//	Assumed: Assume
//	    from Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff
//	Unschedulable: Forget
//	    from Assumed
//	Bound: the API server has it on a node
//	    from NoQueue, Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff, Assumed
//	NoQueue: it changed, or the configuration did, and it is placed again
//	    from Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff
//
// Package internal/state says what each state is. Every change of a pod's state except the first is
// made by States.Enter or States.SetState (internal/admission/states.go).
//
// Delete, or a terminal phase, leads from every state to (none) and takes back the pod's
// charge. After Forget, or when its lease expires, a pod goes on from Unschedulable to
// BackingOff at once, so it comes back without an event. Only Queued pods are in the order.
//
// One event may move many unschedulable pods. The scheduler brings them back one by one, in no
// particular order. So Gate admits none of them: [Store.TakeActivations] admits the first of the
// order once the scheduler has moved them all. Gate of a pod in Scheduling means that its cycle
// ended with an error; the pod has failed. Assume leaves the freed slot empty, because the
// scheduling cycle waits for Assume. The next event or TakeActivations fills it.
//
// Some pods are treated as a group:
//
//   - Equivalence classes: when one pod finds no node, equal pods that found none before
//     leave the order until an event may help one of them (pending.Class).
//   - Gangs: when one pod asks for a Hard gang, all pods of the gang are kept back
//     (internal/lifecycle/gang.go).
//   - PodGroups: the members are admitted together. One that comes first while its group
//     cannot start is GroupBlocked until it can (internal/admission/podgroups.go).
//
// Assumptions: events of one pod arrive in the order in which the API server made them, but
// may be missing, late or repeated with respect to the scheduler's own steps. Only
// informer events (Upsert, Delete, DeleteLastSeenPending) add or remove a pod, so a step for
// a pod that is gone changes nothing. Events of an assumed pod that arrive before its bind is
// seen take effect if the bind fails.
//
// Pods of no queue are tracked for their usage of nodes, and some may also be askers. The
// states of node-bound pods (they can run on one node only) are drawn in input_node_bound.go of
// internal/plans, those of other askers in hold.go of internal/holds.
//
// # Accounting
//
// A pod is charged from the time it gets a queue; what is charged is taken back when it leaves.
// allocated counts assumed and bound pods, admitted counts pods with a slot that hold no node,
// arriving pods that hold a node and are not placed yet, leaving pods that were deleted or chosen as
// victims, unless they linger, preempted those that plans chose for askers of others (Pod.moves),
// pending all pods of the queue without a node. These sums are kept at every queue from the leaf to
// root; for the limits of users and groups allocated, admitted and arriving only. [Readers.Check]
// verifies the store against itself, [Readers.CompareWith] against a listing of pods.
//
// # Readers
//
// There are two outputs (package internal/history):
//
//   - the dirty set: what changed, fetched in small portions ([Readers.TakeChanges], package
//     inventory);
//   - the events: decisions about askers (output.Step, package record) and
//     facts (output.Event, package eventlog).
//
// # Locks
//
// One mutex guards everything except the sort keys, the published snapshots, the node-bound
// pods that filters see, and Ready. These are read without a lock. While a method holds the mutex, it
// calls one function of a caller, which takes no lock: the label selector of a PodDisruptionBudget
// (objects.Budget.Matches). Admitted pods are collected and returned by [Store.TakeActivations],
// and [Store.Wake] signals the one goroutine that calls it.
//
// # Files
//
//	store.go        the store: start, options, admission of pods at the end of each change, and work for its callers
//	informer.go     what informers tell
//	cycle.go        steps of scheduling cycles, and capacity that was freed without an event
//	plans.go        plans and their outcome
//	deadline.go     what is due at a time
//	readers.go      what is; explanation.go all that is known of a pod; waiting.go why pods wait
//	history.go      events and changes for readers
//	dry_run.go      what would happen to a pod
//	check*.go       the checks of the store against itself
package store
