package nodeagent

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// rejection is the reason why a node rejects a pod. Reason and message become those of
// the pod's status.
type rejection struct {
	reason, message string
}

// admit decides, by the function that a kubelet calls, whether a node accepts a pod beside
// the pods that it has admitted already. It returns nil, or the first objection.
func admit(node *framework.NodeInfo, pod *corev1.Pod) *rejection {
	failed := scheduler.AdmissionCheck(pod, node, false)
	switch {
	case len(failed) > 0 && failed[0].InsufficientResource != nil:
		short := failed[0].InsufficientResource
		return &rejection{
			reason: "OutOf" + string(short.ResourceName),
			message: fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				short.ResourceName, short.Requested, short.Used, short.Capacity),
		}
	case len(failed) > 0:
		return predicate(failed[0].Name, failed[0].Reason)
	case !static(pod) && untolerated(node.Node(), pod):
		return predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
	}
	return nil
}

// overcommitted tells whether the admitted pods exceed the allocatable resources, which
// happens only after the node shrank or a pod was resized.
func overcommitted(node *framework.NodeInfo) bool {
	used, has := node.Requested, node.Allocatable
	for name, v := range used.ScalarResources {
		if v > has.ScalarResources[name] {
			return true
		}
	}
	return len(node.Pods) > has.AllowedPodNumber || used.MilliCPU > has.MilliCPU || used.Memory > has.Memory || used.EphemeralStorage > has.EphemeralStorage
}

func predicate(name, description string) *rejection {
	return &rejection{reason: name, message: fmt.Sprintf("Predicate %s failed: %s", name, description)}
}

// static tells whether the object is the mirror of a static pod; like a kubelet, the
// agent starts those on tainted nodes.
func static(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

func untolerated(node *corev1.Node, pod *corev1.Pod) bool {
	_, found := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }, false)
	return found
}
