// Package pending has the pods of queues that have no node: which of them have a slot,
// their deadlines, and what the scheduler's queue must be told about them.
//
// It is a component of package store: it has no lock, goroutine or clock. It decides
// nothing about nodes, quotas and plans, but keeps verdicts and results of plans that it is
// given (PodGroup, Demand, Class). The store calls it under its lock and does what it returns.
// Types that only carry pods have a type parameter for them.
//
//	Pending     all parts, and the queues with more room for blocked pods
//	Order, RetryEarly, AheadOnly
//	            pods by order: for a slot, for an early retry, for ahead.go of admission
//	Window      the pods let through the gate, and how many that may be
//	Classes     equivalence classes of pods that found no node
//	ClassLimit  how many members of classes may be admitted at a time
//	PodGroups   which members can go on, and for what a PodGroup waits
//	BlockedHolders
//	            pods that hold a node and that a quota refuses
//	Demand      pods that found no node and would run on new nodes
//	Keys        sort keys of pods in the scheduler's queue
//	Timers      pods by deadline
//	FreedUnseen pods that gave room back without an event in the scheduler's queue
//	TooEarly    pods that asked for room before the store was ready
//	Transitions changes of state that the table does not have
package pending
