// Package planner describes the problem of preemption and its result: which pods are
// preempted for an asker, and why.
//
//	snapshot.go the input: a frozen [Snapshot], an [Ask] and [Params]
//	group.go    the pods that must start together with the asker
//	digest.go   the pods of a node, in the form that plans read
//	rule.go     the rules, among them laws 1 to 7
//	decision.go the result: a [Decision] with the numbers by which it was judged
//	sentence.go its texts for people
//	budgets.go  what PodDisruptionBudgets still allow
//
// Package search finds the decision. Package judge judges it again by the same laws. The
// two share no code but this package, and neither imports the other. Package daemonset
// decides for a pod that can run on one node only.
package planner
