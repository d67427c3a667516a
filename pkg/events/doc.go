// Package events tells people why pods of queues wait. The scheduler says
// nothing about a pod that is held before its queue, so we do: an event on the
// pod, and a pod condition of our own, paddock.io/Admitted, with a reason code,
// a sentence and what to do about it from package reasons. A warning about
// something that is ignored, and for which no pod waits, is an event only.
//
// PodScheduled with reason Unschedulable makes a cluster autoscaler add nodes. So it is on a
// pod only while the pod would run if a node came: where it is on a pod that a quota keeps
// from running, the reason becomes SchedulingGated, and Unschedulable again once the quota
// allows the pod; see demand.go.
//
// Only the leader writes. Writes of PodScheduled are not rate limited; all others are.
package events
