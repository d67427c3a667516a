// Package holds begins and ends the holds of nodes for preemptors, and lets a preemptor
// through when its node has room.
//
// What happens to a hold between the plan that begins it and its end belongs here; which
// victims a plan has is for package plans. The ledger of the holds is in package
// preemption. The package calls model and admission; see model for the order of the
// packages.
//
//	hold.go        the begin and the end of a hold
//	deadline.go    time-outs
//	wake.go        when a preemptor is let through
//	victims.go     the pods that a preemptor waits for; need.go whether they must go
//	losses.go      room that other pods took; refusals.go kubelets that had none
//	node_bound.go  holds of pods that can run on one node only
package holds
