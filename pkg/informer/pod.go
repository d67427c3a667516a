package informer

import (
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Translate returns what the store needs to know of a pod. Options.Translate adds whether
// it is foreign, static or of a DaemonSet, which depends on more than the pod.
func Translate(pod *corev1.Pod, o RequestOptions) objects.Pod {
	p := objects.Pod{
		Identity: objects.Identity{
			UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name,
			Labels: pod.Labels, Annotations: pod.Annotations,
			Created:    pod.CreationTimestamp.Time,
			Owners:     owners(pod),
			Controller: controller(pod),
		},
		Spec: objects.Spec{
			Priority:      ptr.Deref(pod.Spec.Priority, 0),
			Grace:         seconds(pod.Spec.TerminationGracePeriodSeconds),
			NeverPreempts: ptr.Deref(pod.Spec.PreemptionPolicy, "") == corev1.PreemptNever,
			Class:         pod.Spec.PriorityClassName,
			OptOut:        podOptOut(pod),
			Originator:    originator(pod),
		},
		Status: objects.Status{
			Node:          pod.Spec.NodeName,
			Deleting:      pod.DeletionTimestamp != nil,
			DeletionGrace: seconds(pod.DeletionGracePeriodSeconds),
			Terminal:      Ended(pod),
			Gated:         len(pod.Spec.SchedulingGates) > 0,
			Claim:         Claim(pod),
			Health:        health(pod),
		},
		Request: Requests(pod, o),
	}
	if pod.DeletionTimestamp != nil {
		p.GoneBy = pod.DeletionTimestamp.Time
	}
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; {
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler:
			p.Preempted = strings.HasPrefix(c.Message, reservations.VictimMessage) && !strings.HasSuffix(c.Message, reservations.OwnVictim)
		case c.Type == reasons.AdmittedCondition && c.Status == corev1.ConditionFalse:
			p.Told = reasons.Code(c.Reason)
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && p.Node != "":
			p.Scheduled = c.LastTransitionTime.Time
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && p.Node == "":
			p.Demand = demandSaid(c.Reason, c.Message)
		}
	}
	return p
}

// seconds is a number of seconds; 0 for none. A deletion timestamp includes the grace
// period.
func seconds(s *int64) time.Duration {
	return time.Duration(min(ptr.Deref(s, 0), math.MaxInt64/int64(time.Second))) * time.Second
}

// Condition returns the condition of a type of a pod; nil if there is none.
func Condition(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == of {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// RefOf returns the reference to a pod.
func RefOf(p *corev1.Pod) objects.Ref {
	return objects.Ref{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// Named returns a pod that has only what its reference says.
func Named(r objects.Ref) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, UID: r.UID}}
}

// Ended reports whether a pod has ended, so that it uses nothing.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Find returns the pod of a reference; nil if it is gone or another pod has its name.
func Find(pods corelisters.PodLister, r objects.Ref) *corev1.Pod {
	pod, err := pods.Pods(r.Namespace).Get(r.Name) // fails only if the pod is not there
	if err != nil || pod.UID != r.UID {
		return nil
	}
	return pod
}

// health is what upstream's eviction and its disruption controller read of a pod.
func health(pod *corev1.Pod) objects.Health {
	if c := Condition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return objects.Ready
	}
	if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "" {
		return objects.NotStarted
	}
	return objects.Unready
}

// demandSaid is what condition PodScheduled of a pod without a node means to cluster
// autoscalers. With SchedulingGated only the message tells a pod that exceeds a quota from
// one that was made with scheduling gates.
func demandSaid(reason, message string) objects.DemandSaid {
	switch {
	case reason == corev1.PodReasonUnschedulable:
		return objects.DemandWanted
	case reason == corev1.PodReasonSchedulingGated && strings.Contains(message, objects.BeyondMessage):
		return objects.DemandBeyond
	}
	return objects.DemandOther
}

// Translate returns what the store needs to know of a pod, foreign or not.
func (o *Options) Translate(pod *corev1.Pod) objects.Pod {
	p := Translate(pod, o.Requests)
	if p.Foreign, p.Peer = !o.Managed(pod), o.peer(pod); p.Foreign {
		p.Scheduler = pod.Spec.SchedulerName
	}
	p.Static = o.static(pod)
	p.RequiredNode, p.MaybeDaemon = o.RequiredNode(pod)
	return p
}
