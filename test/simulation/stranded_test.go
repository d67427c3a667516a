package simulation_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
// Nobody tells for whom a call was, so all who are nominated then may be stranded. There
// is no rest until the queue was swept, which tries them.

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
			if !in.stranded[uid] {
				in.sim.count(strandings)
			}
			in.stranded[uid] = true
		}
	})
}

// stranded tells whether a pod that waits may be stranded. The caller holds the lock.
func (s *simulation) stranded() bool {
	leader := s.leader()
	return leader != nil && slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool { return pending(p) && leader.stranded[p.UID] })
}
