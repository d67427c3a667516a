// Package admission decides which waiting pod gets a slot next. It has every transition of
// a pod without a node ([States]), the choice of the next pod ([Slots]), PodGroups that
// start together ([PodGroups]), and which pods more nodes would help ([Demand]).
//
// Something belongs here if it concerns pods without a node, and makes no hold or plan. It also
// decides when a pod is checked for preemption, because that follows from changes of its state.
// The package calls model only; see there for the order of the packages.
//
//	states.go      the transitions between states
//	slots.go       the next pod of the order
//	ahead.go       pods that go before one that found a node
//	podgroups.go   when a PodGroup starts; members.go which pods are in it
//	retry.go       pods that come back without an event of the scheduler's queue, and when a
//	               pod is checked for preemption
//	node_bound.go  node-bound pods that go first on their nodes
//	demand.go      pods that would run on new nodes
//	why.go         why a pod is in its state
package admission
