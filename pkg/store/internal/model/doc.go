// Package model has the records of pods and applications, all state of the store, and the
// changes that concern only the books: usage of queues, owners and nodes, and what readers
// are told. It decides nothing: a change that needs a rule is in a package above.
//
// A [Pod] is one record of three parts by life: that of package cache, which every pod has;
// [WaitState], which a pod has until it runs; and a preemption.Asker, which a pod has while room
// may be made for it.
//
// The packages above use a Model in one order, and each calls only those before it:
//
//	model      records and books
//	admission  the states of waiting pods, and which pod gets a slot next
//	holds      nodes that are held for askers
//	plans      when a plan is made, for which pod, and whether it is carried out
//	lifecycle  pods, nodes, queues and namespaces that come, change and go
//	cycle      the steps of scheduling cycles
//
// None of them has a lock, a clock or state of its own: package store has the lock, the
// time is an argument, and state is in the model and its components (cache, pending,
// preemption and history), each with its own Check. Where a method has the name of a method of
// store.Store, package store calls it under its lock, and the comment there says more.
//
//	model.go        [Model]
//	options.go      settings of a store
//	pod.go, app.go  the records; podgroups.go those of PodGroups and gangs
//	pod_changes.go  changes of a known pod
//	books.go        what pods are charged, and the queues of the orders
//	node.go         pods on nodes, nodes that changed for plans, and nodes and pods as plans see them
//	placement.go    pods as package placement sees them
//	history.go      what happened; record.go records for readers
//	outbox.go       work for callers of the store
package model
