// Package inventory lists what there is for readers: applications, nodes and their pods,
// with the queues of the same moment, as immutable views.
//
// Readers must not delay scheduling, so no reader walks the store. The store marks what
// changed, and [Inventory.View] takes the changes in small bites. The store's lock is held
// only for one bite at a time, and pods that did not change are not visited. Then the lists
// of the applications and nodes that changed are rebuilt under the inventory's own lock. A
// request that writes an answer has a view and holds no lock, however slowly its client
// reads.
//
// Everything in a view is of one moment: the last bite has the queues, the holds and the
// configuration as they are once no change is left.
//
//	store ── marks ──► TakeChanges, 256 at a time ──► records by UID ──► View
//	        (lock of the store)                 (lock of the inventory)   (no lock)
//
// A view shares the store's record of each pod, and lists are kept small (members.go),
// because there is one record for every pod of a cluster.
//
// The reason why a pod waits is computed when it is shown ([Inventory.Whys]). It changes with
// the usage of other pods, so the store cannot mark it.
package inventory
