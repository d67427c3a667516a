// Package plans decides when a plan is made and for which pod, puts it into force, and
// checks it again before its victims are deleted. Plans themselves are made by package
// planner.
//
// Something belongs here if it concerns a plan: its input, its result, or the question
// whether it is still lawful. The package calls model, admission and holds; see model for
// the order of the packages.
//
// A plan goes through these files from top to bottom. Node-bound pods differ in what is marked with
// a star:
//
//	queue.go     which pod is let through next to have a plan made: EnqueueDue, LetAskerThrough
//	             * they are planned for in every cycle that fails
//	input.go     the input, or why no plan is made now: BeginPlan; group.go adds the PodGroup
//	             * input_node_bound.go: BeginNodeBoundPlan
//	result.go    the plan is accepted, and its hold begins: AcceptPlan; or refused: RejectPlan
//	             * result_node_bound.go: ApplyPlan; the hold may begin before there are victims
//	commit.go    the plan is checked again, and its victims may be deleted: Commit
//	end.go       the victims are deleted: VictimsDeleted; or they stay: FailPlan
//	             * AbortPlan: they stay, and the node is held on
//	restore.go   plans that another process has written: RestoreHold
package plans
