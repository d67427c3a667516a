package simulation_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// overDemand finds queues for which an autoscaler would add nodes that their pods may not
// use: the running pods and the pods with reason Unschedulable together are over max. The
// caller holds the lock.
func (s *simulation) overDemand() []complaint {
	wanted := map[string]resources.Vector{}
	var asking []*corev1.Pod
	for _, pod := range s.api.allPods() {
		if !s.wantsNode(pod) {
			continue
		}
		asking = append(asking, pod)
		for _, queue := range ancestors(pod.Labels[placement.KeyQueue]) {
			wanted[queue] = wanted[queue].Add(request(pod))
		}
	}
	var all []complaint
	for _, pod := range asking {
		for _, queue := range ancestors(pod.Labels[placement.KeyQueue]) {
			most, limited := maxOf(s.lastValid.spec, queue)
			rest := s.api.usedBelow(queue).Add(wanted[queue]).Sub(request(pod))
			if limited && !s.removed[queue] && !most.Allows(rest, request(pod)) {
				all = append(all, complaint{what: "demand of " + pod.Name, err: fmt.Errorf(
					"a node is wanted for pod %s, which requests %v: queue %s uses and asks for %v besides, max %v", pod.Name, request(pod), queue, rest, most)})
			}
		}
	}
	return all
}

// wantsNode tells whether autoscalers add a node for a pod of a queue.
func (s *simulation) wantsNode(pod *corev1.Pod) bool {
	if pod.Spec.SchedulerName != managed || !pending(pod) || pod.Status.NominatedNodeName != "" || s.requiredNode(pod) != "" {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}
