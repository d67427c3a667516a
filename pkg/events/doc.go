// Package events tells people why pods of queues wait. The scheduler says
// nothing about a pod that is held before its queue, so we do: an event on the
// pod, and a pod condition of our own, paddock.io/Admitted, with a reason code,
// a sentence and what to do about it from package reasons. A warning about
// something that is ignored, and for which no pod waits, is an event only.
//
// The condition is never PodScheduled with reason Unschedulable: that would
// make a cluster autoscaler add nodes for pods that wait for a quota. Writes
// are rate limited, and made by the leader only.
package events
