// Package inventory lists what there is for readers: applications, nodes and their pods,
// with the queues of the same moment, as immutable views.
//
// Readers must not delay scheduling, so no reader walks the store. The store marks what
// changed, and [Inventory.View] takes that in small bites, the only time at which the
// store's lock is held; a pod that did not change is not looked at. Lists are put
// together from the bites afterwards, under the inventory's own lock, only for
// applications and nodes that changed. A request that writes an answer has a view and
// holds no lock, however slowly the answer is read.
//
// Everything in a view is of one moment: the last bite brings the queues, the
// holds and the configuration as they are when nothing is left to be told.
//
//	store ── marks ──► TakeChanges, 256 at a time ──► records by UID ──► View
//	        (lock of the store)                 (lock of the inventory)   (no lock)
//
// There is one record for every pod of a cluster, so it is the store's own record of the
// pod, and lists are kept small (members.go).
//
// Only why pods wait is computed when it is shown ([Inventory.Whys]): it changes with
// what others use, so it cannot be marked.
package inventory
