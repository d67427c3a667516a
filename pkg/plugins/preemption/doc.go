// Package preemption is the plugin that answers "may it run now" (PreFilter:
// the quota verdict) and "who must make room" (PostFilter).
//
// PreFilter answers UnschedulableAndUnresolvable: a plain Unschedulable would
// let upstream's DefaultPreemption evict pods on nodes, which does not help a
// pod that is over its quota. It must be the last PreFilter plugin, so that the
// others have left their state for the filters.
//
// PostFilter asks the store whether a plan may be made, has package victims make
// it, and gives it to the store, which holds the node and has the executor do the
// rest. It makes no API call and does not wait. fits.go is the seam between the
// plan and the scheduler's own filters; nodes.go says which nodes are worth
// planning for. required.go is both for pods of DaemonSets, which can run on one
// node only, and which may be of any profile that enables the plugin.
package preemption
