// Package plans decides when a plan is made and for which pod, and checks a plan again
// before its victims are deleted. Plans themselves are made by package planner.
//
// [Plans] has the pods that may run on many nodes, [NodeBound] those that can run on one
// node only, and [Adoption] the plans that another process has written.
//
// Something belongs here if it concerns a plan: its input, its result, or the question
// whether it is still lawful. The package calls model, admission and holds; see model for
// the order of the packages.
//
//	queue.go             for which pod a plan is made next
//	attempt.go           the input of a plan, and plans that are refused
//	group.go             what a plan needs to know of the preemptor's PodGroup
//	accept.go            plans that are accepted, and how they end
//	commit.go            the second check, before victims are deleted
//	node_bound.go        the same for node-bound pods: the input of a decision,
//	node_bound_apply.go  its result,
//	node_bound_abort.go  and victims that stay after all
//	adopt.go             holds of other processes
package plans
