// Package holds begins and ends the holds of nodes for askers, and lets an asker
// through when its node has room.
//
// What happens to a hold between its begin and its end belongs here; package plans decides which
// victims a plan has. The ledger of the holds is model.Preemption.Ledger. Asker.HoldsNode tells
// whether a pod has one, and Store.Holds is the copy for filters and readers. The package calls
// model and admission; see model for the order of the packages.
//
//	hold.go      the begin and the end of a hold, and other victims for it; the drawing of
//	             its states, and all reasons for its end
//	victims.go   the pods that an asker waits for, and whether they must go
//	wake.go      when an asker is let through
//	deadline.go  time-outs
//	losses.go    room that other pods took, and kubelets that had none
package holds
