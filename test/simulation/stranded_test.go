package simulation_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A pod that upstream's preemption makes room for is stranded when its last victim is
// found to be gone already: while the calls go on, its end brings the pod back in vain,
// and no other end comes (kubernetes/kubernetes#141694). It is nominated to the node until
// the queue is swept, and filters keep the room for it.
//
//	         a call for a victim is answered "not found"
//	nominated ─────────────────────────────────────────► perhaps stranded
//	    ▲                                                       │
//	    └───────────────────────────────────────────────────────┘
//	                    a cycle of the pod begins
//
// Nobody tells for whom a call was, so all who are nominated then may be stranded.

// strand is told that a call of upstream's preemption found no victim.
func (in *instance) strand() {
	var nodes []string
	in.api.locked(func() {
		for _, n := range in.api.allNodes() {
			nodes = append(nodes, n.Name)
		}
	})
	var stranded []types.UID
	for _, node := range nodes {
		for _, nominated := range in.nominated(node) {
			if pod := nominated.GetPod(); pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
				stranded = append(stranded, pod.UID)
			}
		}
	}
	in.api.locked(func() {
		for _, uid := range stranded {
			in.stranded[uid] = true
		}
	})
}

// free is what a node has left for a pod of the priority: what pods do not use, and what
// is not kept for one that is stranded. The caller holds the lock.
func (s *simulation) free(in *instance, n *corev1.Node, priority int32) resources.Vector {
	free := informer.Allocatable(n).Sub(s.api.usedOn(n.Name))
	for _, nominated := range in.nominated(n.Name) {
		if pod := nominated.GetPod(); in.stranded[pod.UID] && corev1helpers.PodPriority(pod) >= priority {
			free = free.Sub(request(pod))
		}
	}
	return free
}

// least is the least priority of the pods.
func least(pods []*corev1.Pod) int32 {
	priority := corev1helpers.PodPriority(pods[0])
	for _, p := range pods {
		priority = min(priority, corev1helpers.PodPriority(p))
	}
	return priority
}
