package nodeagent

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// rejection is the reason why a node rejects a pod. Reason and message become those of
// the pod's status.
type rejection struct {
	reason, message string
}

// admit decides whether a node accepts a pod beside the pods that it has admitted
// already. It returns nil, or the first objection in the kubelet's order: number of pods,
// resources, node selector and affinity, host ports, taints.
func admit(node *corev1.Node, used usage, pod *corev1.Pod, d demand) *rejection {
	if r := fits(node.Status.Allocatable, used, d); r != nil {
		return r
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); !ok || err != nil {
		return predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
	}
	for _, p := range d.ports {
		if used.ports.CheckConflict(p.HostIP, string(p.Protocol), p.HostPort) {
			return predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
		}
	}
	if !static(pod) && untolerated(node, pod) {
		return predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
	}
	return nil
}

func fits(allocatable corev1.ResourceList, used usage, d demand) *rejection {
	if limit := units(corev1.ResourcePods, allocatable[corev1.ResourcePods]); used.pods+1 > limit {
		return outOf(corev1.ResourcePods, 1, used.pods, limit)
	}
	for _, name := range d.inOrder() {
		limit := units(name, allocatable[name])
		if d.amounts[name] > limit-used.amounts[name] {
			return outOf(name, d.amounts[name], used.amounts[name], limit)
		}
	}
	return nil
}

// overcommitted tells whether the admitted pods exceed the allocatable resources, which
// happens only after the node shrank.
func overcommitted(allocatable corev1.ResourceList, used usage) bool {
	if used.pods > units(corev1.ResourcePods, allocatable[corev1.ResourcePods]) {
		return true
	}
	for name, v := range used.amounts {
		if v > units(name, allocatable[name]) {
			return true
		}
	}
	return false
}

func outOf(name corev1.ResourceName, requested, used, capacity int64) *rejection {
	return &rejection{
		reason: "OutOf" + string(name),
		message: fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
			name, requested, used, capacity),
	}
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

// units converts a quantity to the integer unit of scheduler and kubelet.
func units(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}
