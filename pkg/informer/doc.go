// Package informer translates objects of the API server into events of the queue store:
// pods, nodes, namespaces, PodDisruptionBudgets, PriorityClasses and DaemonSets ([Watch]),
// and the configuration of the queues ([ConfigMaps] or [ConfigFile]). It makes no decisions.
//
// It passes on all pods with a node, foreign ones too, because they use the node. Of pods
// without a node it passes on the managed ones, and those of other profiles with
// QueuePreemption that can run on one node only. preemption.go reads what preemption needs
// of a pod; budget.go reads which pods a budget covers; daemonset.go looks up the
// DaemonSets that pods name as owners.
//
// PriorityClasses and DaemonSets have informers outside the scheduler's factory: a role may
// forbid to read them, and the scheduler must start all the same (optional.go). All other
// objects must have been listed before it starts.
//
// The handlers may run before, after or while the scheduler handles the same object; the
// store permits any order (see its assumptions).
package informer
