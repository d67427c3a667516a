// Package queues is the model: the tree of queues with what each may use, is
// promised and does use, frozen in a [Snapshot].
//
// A [Queue] is an immutable value: its [Settings] (from the configuration, or
// from a template for a dynamic queue) and its [Usage]. A [Snapshot] is a
// complete tree at one moment; readers share it without locks. Writing goes
// through a [Draft]: it copies what it touches, leaf to root, and publishes the
// next Snapshot; the copies are of the touched path only, so a tree of 5,000
// queues costs an event no more than a tree of five.
//
// Rules that are functions of a snapshot live here too: may an ask run now
// ([Admit]), how much room is left ([Headroom]), what priority does an ask have
// seen from the root ([Rank]).
//
// Words are those of the glossary in docs/architecture.md. An ask is a pending
// pod; an allocation is a pod with a node, assumed or bound. Admitted is what
// asks that were let through the gate would use and do not use yet.
//
// Start with queue.go, snapshot.go, draft.go; then admit.go.
package queues
