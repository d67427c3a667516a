// Package events tells people why pods of queues wait. The scheduler says
// nothing about a pod that is held before its queue, so we do: an event on the
// pod, and a pod condition of our own, paddock.io/Admitted, with a reason code
// and a sentence from package reasons.
//
// The condition is never PodScheduled with reason Unschedulable: that would
// make a cluster autoscaler add nodes for pods that wait for a quota. Writes
// are rate limited, and made by the leader only.
package events
