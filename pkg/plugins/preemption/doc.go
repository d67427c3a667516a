// Package preemption is the plugin that answers "may it run now" (PreFilter:
// the quota verdict). PostFilter is where "who must make room" will be answered;
// it makes no room yet and only notes that no node took the pod.
//
// PreFilter answers UnschedulableAndUnresolvable: a plain Unschedulable would
// let upstream's DefaultPreemption evict pods on nodes, which does not help a
// pod that is over its quota. It must be the last PreFilter plugin, so that the
// others have left their state for the filters.
package preemption
