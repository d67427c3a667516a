// Package inventory is what there is, for those who only look: applications,
// nodes and their pods, with the queues of the same moment, as immutable views.
//
// Readers must not hold up who decides. So nobody walks the store: it marks what
// changed, and [Inventory.View] comes for that in small bites, for which alone the
// store's lock is held; a pod that did not change is not looked at. Lists are put
// together from the bites afterwards, under the inventory's own lock, for those
// applications and nodes only that something happened to. Who writes an answer has a
// view and no lock at all, however slowly it is read.
//
// Everything in a view is of one moment: the last bite brings the queues, the
// holds and the configuration as they are when nothing is left to be told.
//
//	store ── marks ──► TakeChanges, 256 at a time ──► records by UID ──► View
//	        (lock of the store)                 (lock of the inventory)   (no lock)
//
// There is one record for every pod of a cluster, so it leads to what the store has of
// the pod anyway, and lists and names are kept small (members.go, named.go).
//
// Only why pods wait is asked for when it is shown ([Inventory.Whys]): it changes with
// what others use, and nobody could mark it.
package inventory
