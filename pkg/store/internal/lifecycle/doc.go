// Package lifecycle takes up what informers tell: pods, nodes, namespaces, PriorityClasses
// and configurations that come, change and go. (PodGroups: admission.States.SetPodGroup;
// disruption budgets: cache.Protection.)
//
// What follows from an event of an object belongs here, and so does the placement of a pod
// in a queue. The package calls model, admission, holds and plans; see model for the order
// of the packages.
//
//	pods.go       pods of queues: each event, and the end
//	foreign.go    pods of no queue
//	place.go      the application and the queue of a pod
//	gang.go       applications that ask for a Hard gang
//	cluster.go    nodes, PriorityClasses
//	configure.go  configurations and namespaces
package lifecycle
