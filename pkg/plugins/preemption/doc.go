// Package preemption is the plugin that checks the quota of a pod (PreFilter) and chooses
// the victims for it (PostFilter).
//
// PreFilter returns UnschedulableAndUnresolvable. A plain Unschedulable would let
// upstream's DefaultPreemption evict pods on nodes, which does not help a pod that is
// over its quota. The plugin must be the last PreFilter plugin, so that the others have
// written the state that the filters read.
//
// PostFilter asks the store whether it may plan, has package search make the plan, and
// passes it to the store. The store holds the node, and the executor does the rest.
// PostFilter makes no API call and does not wait. fits.go connects the plan to the
// scheduler's own filters; nodes.go selects the nodes worth planning for. node_bound.go
// does both for DaemonSet pods, which can run on one node only and may be of any profile
// that enables the plugin.
package preemption
