// Package informer translates what the API server says into events of the
// queue store: pods, nodes, namespaces, PodDisruptionBudgets and PriorityClasses
// ([Watch]), and the configuration of the queues ([ConfigMaps] or [ConfigFile]).
// It decides nothing.
//
// All pods with a node are told of, foreign ones too, since they use it; of those
// without only the managed. What preemption has to know of a pod is read in
// preemption.go, whom a budget covers in budget.go.
//
// PriorityClasses have an informer beside the scheduler's factory: a role may
// forbid them, and the scheduler starts all the same (priorityclass.go). Everything
// else has to arrive first.
//
// The handlers may run before, after or while the scheduler sees the same
// object; the store does not mind (see its assumptions).
package informer
