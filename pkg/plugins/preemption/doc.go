// Package preemption is the plugin that answers "may it run now" (PreFilter:
// the quota verdict) and "who must make room" (PostFilter).
//
// PreFilter answers UnschedulableAndUnresolvable: a plain Unschedulable would
// let upstream's DefaultPreemption evict pods on nodes, which does not help a
// pod that is over its quota. It must be the last PreFilter plugin, so that the
// others have left their state for the filters.
package preemption
