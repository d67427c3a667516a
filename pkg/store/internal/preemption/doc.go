// Package preemption has the state that decides for which pods room is made, and when.
//
// It is a component of package store: it has no lock, goroutine or clock, and does not have
// the store's records of pods: a pod is known here by its UID, its Asker or as an
// objects.Pod. The store calls it under its lock and does what it returns.
//
//	Asker      the record of a pod that may have room made for it
//	Queue      when stuck pods get a plan
//	Limiter    how often plans are made, and how many pods they disrupt
//	Losses     holds that an asker lost, and the pause after them
//	KubeletRejections
//	           pods that a kubelet may have refused although room was made for them
//	Undeletable
//	           victims that the API server refused to delete, and for how long they are none
//	Watches    the queues and nodes that a refusal named
//	Snapshot   the nodes as plans see them
//	Sweep      the nodes that the filters refused in earlier plans
//	Ledger     the nodes that are held for askers
//	NodeBound  node-bound pods, and which of them were not tried on their nodes
//	OwnTime    for how long a namespace keeps a node for pods of its own that leave
//
// A plan for a pod of a queue is made at the latest of these times:
//
//	model.Pod.DelayEnd  the preemption.delay of its leaf ends (P1)
//	Retry.RetryAt       the retry interval after a refused plan ends, or AtMostEvery if
//	                    something in Watches changes; one time for an equivalence class
//	Losses.Until        the pause after a lost hold ends; a PodGroup has one for its members
//	VictimsFrom         the round has room for another victim (P2)
//	Limiter.PlansFrom   failed plans have not used up the time for plans
package preemption
