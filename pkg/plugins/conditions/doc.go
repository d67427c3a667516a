// Package conditions corrects the PodScheduled condition of pods of queues for cluster
// autoscalers. The scheduler writes PodScheduled=False with reason Unschedulable on every
// pod that found no node, and autoscalers add nodes for all of these. Where a quota keeps
// a pod from running on any node, [Correct] makes the scheduler write reason
// SchedulingGated instead. Package events corrects conditions that were written earlier
// or that become wrong later.
package conditions
