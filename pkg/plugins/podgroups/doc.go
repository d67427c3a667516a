// Package podgroups is plugin Coscheduling of sigs.k8s.io/scheduler-plugins, for a
// scheduler with queues.
//
// The plugin is upstream's: it knows how many pods of a group have a place, lets them
// wait for each other at Permit, and takes their places back when one finds none. It does
// not see what other processes bound while this one stood by. The store does, so the
// plugin asks the store, and no pod waits for pods that run.
//
// What is added is that the store is told of PodGroups, too. It lets the members of a group
// through together, when enough of them can go on and the quota has room for all that are
// missing; see package admission of the store. Without that they would be let through one
// by one, by the order of pods, and those let through would keep quota and nodes from
// others for members that cannot come.
package podgroups
