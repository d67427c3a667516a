// Package conditions has the scheduler tell cluster autoscalers the truth about pods of
// queues. The scheduler writes PodScheduled=False with reason Unschedulable on every pod
// that found no node, and autoscalers add nodes for all of these. Where a quota keeps a pod
// from running on any node, the reason is SchedulingGated instead: [Correct] sees to it at
// the moment of the write. Package events corrects what was written before, and what comes
// to be wrong later.
package conditions
