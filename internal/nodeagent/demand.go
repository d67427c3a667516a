package nodeagent

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// demand is the resources that one pod uses on its node: cpu in thousandths of a core,
// everything else in units of one.
type demand struct {
	amounts map[corev1.ResourceName]int64
	ports   []corev1.ContainerPort // with a port of the node
}

// demandOf sums up a pod as scheduler and kubelet do, overhead and init containers
// included. Resources that are zero or that a ResourceClaim provides are left out.
func demandOf(pod *corev1.Pod) demand {
	d := demand{amounts: map[corev1.ResourceName]int64{}, ports: schedutil.GetHostPorts(pod)}
	claimed := map[string]bool{}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		for _, m := range s.RequestMappings {
			claimed[m.ResourceName] = true
		}
	}
	for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if v := units(name, quantity); v > 0 && !claimed[string(name)] {
			d.amounts[name] = v
		}
	}
	return d
}

// usage is the sum of the demands of the pods a node has admitted.
type usage struct {
	pods    int64
	amounts map[corev1.ResourceName]int64
	ports   fwk.HostPortInfo
}

func (u *usage) add(d demand) {
	if u.amounts == nil {
		u.amounts, u.ports = map[corev1.ResourceName]int64{}, fwk.HostPortInfo{}
	}
	u.pods++
	for name, v := range d.amounts {
		u.amounts[name] += v
	}
	for _, p := range d.ports {
		u.ports.Add(p.HostIP, string(p.Protocol), p.HostPort)
	}
}

func (u *usage) remove(d demand) {
	u.pods--
	for name, v := range d.amounts {
		u.amounts[name] -= v
	}
	for _, p := range d.ports {
		u.ports.Remove(p.HostIP, string(p.Protocol), p.HostPort)
	}
}

// inOrder returns the resource names of a demand in the order in which a kubelet checks
// them.
func (d demand) inOrder() []corev1.ResourceName {
	first := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	var out []corev1.ResourceName
	for _, name := range first {
		if _, ok := d.amounts[name]; ok {
			out = append(out, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.amounts)) {
		if !slices.Contains(first, name) {
			out = append(out, name)
		}
	}
	return out
}
