package nodeagent

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

// standing is the state of a pod on its node.
type standing int

const (
	// waiting: bound, but the node has not decided yet, because it is unknown.
	waiting standing = iota
	// admitted: the pod holds resources of the node.
	admitted
	// refused: the node has rejected the pod; the status may not be written yet.
	refused
	// ended: the API server knows a terminal phase.
	ended
)

// action is the write that a pod needs.
type action int

const (
	doNothing action = iota
	doStart
	doReject
	doSucceed
	// doTerminate writes a terminal phase and deletes the pod.
	doTerminate
	// doRemove deletes a pod in a terminal phase.
	doRemove
)

// step is the action for a pod now and, if wait is positive, the time until the next
// check.
type step struct {
	do   action
	wait time.Duration
}

// nextStep decides what happens to a pod on a node of ours. deletedAt is when the agent
// learned of the deletion; it is zero for a pod that is not being deleted, and for one of
// which the agent has not seen the deletion yet.
func nextStep(pod *corev1.Pod, where standing, s script, deletedAt, now time.Time) step {
	if pod.DeletionTimestamp != nil {
		return deletionStep(pod, where, s, deletedAt, now)
	}
	if podutil.IsPodTerminal(pod) {
		return step{}
	}
	switch where {
	case refused:
		return step{do: doReject}
	case admitted:
		if !started(pod) || pod.Status.Phase != corev1.PodRunning {
			return step{do: doStart}
		}
		return runningStep(pod, s, now)
	default:
		return step{}
	}
}

// runningStep ends a pod that is to complete, in time.
func runningStep(pod *corev1.Pod, s script, now time.Time) step {
	if s.complete == nil {
		return step{}
	}
	if wait := pod.Status.StartTime.Add(*s.complete).Sub(now); wait > 0 {
		return step{wait: wait}
	}
	return step{do: doSucceed}
}

func deletionStep(pod *corev1.Pod, where standing, s script, deletedAt, now time.Time) step {
	if podutil.IsPodTerminal(pod) {
		if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
			return step{} // only finalizers keep it
		}
		return step{do: doRemove}
	}
	if where != admitted {
		return step{do: doTerminate}
	}
	if deletedAt.IsZero() {
		return step{} // the lister has it before the agent's handler is called, which then schedules the pod again
	}
	if wait := stopTime(pod, s, deletedAt).Sub(now); wait > 0 {
		return step{wait: wait}
	}
	return step{do: doTerminate}
}

// stopTime is when a deleted pod's processes have ended.
func stopTime(pod *corev1.Pod, s script, deletedAt time.Time) time.Time {
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	return deletedAt.Add(min(grace, ptr.Deref(s.stop, grace)))
}

// started tells whether the status shows that a node has admitted the pod.
func started(pod *corev1.Pod) bool {
	return pod.Status.StartTime != nil && !podutil.IsPodTerminal(pod)
}
