package informer

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Translate is what the store needs to know of a managed pod.
func Translate(pod *corev1.Pod, o RequestOptions) store.Pod {
	p := store.Pod{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name,
		Labels: pod.Labels, Annotations: pod.Annotations,
		Request:  Requests(pod, o),
		Created:  pod.CreationTimestamp.Time,
		Node:     pod.Spec.NodeName,
		Deleting: pod.DeletionTimestamp != nil,
		Terminal: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Gated:    len(pod.Spec.SchedulingGates) > 0,
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == reasons.AdmittedCondition && c.Status == corev1.ConditionFalse {
			p.Told = reasons.Code(c.Reason)
		}
	}
	if pod.Spec.Priority != nil {
		p.Priority = *pod.Spec.Priority
	}
	return p
}
