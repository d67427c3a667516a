package nodeagent

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// demand is the resources that one pod uses on its node: cpu in thousandths of a core,
// everything else in units of one.
type demand struct {
	amounts map[corev1.ResourceName]int64
	ports   []hostPort
}

// hostPort is a port of the node that a container occupies; an empty ip means all addresses.
type hostPort struct {
	ip       string
	protocol corev1.Protocol
	port     int32
}

func (p hostPort) conflicts(other hostPort) bool {
	return p.port == other.port && p.protocol == other.protocol && (p.ip == other.ip || p.ip == "" || other.ip == "")
}

// demandOf sums up a pod as scheduler and kubelet do, overhead and init containers
// included. Resources that are zero or that a ResourceClaim provides are left out.
func demandOf(pod *corev1.Pod) demand {
	d := demand{amounts: map[corev1.ResourceName]int64{}}
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
	for _, c := range pod.Spec.Containers {
		d.ports = append(d.ports, hostPorts(c)...)
	}
	for _, c := range pod.Spec.InitContainers {
		if restartable(c) {
			d.ports = append(d.ports, hostPorts(c)...)
		}
	}
	return d
}

func hostPorts(c corev1.Container) []hostPort {
	var out []hostPort
	for _, p := range c.Ports {
		if p.HostPort == 0 {
			continue
		}
		h := hostPort{ip: p.HostIP, protocol: p.Protocol, port: p.HostPort}
		if h.ip == "0.0.0.0" || h.ip == "::" {
			h.ip = ""
		}
		if h.protocol == "" {
			h.protocol = corev1.ProtocolTCP
		}
		out = append(out, h)
	}
	return out
}

// restartable tells whether an init container is a sidecar, which runs as long as the pod
// does.
func restartable(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// usage is the sum of the demands of the pods a node has admitted.
type usage struct {
	pods    int64
	amounts map[corev1.ResourceName]int64
	ports   []hostPort
}

func (u *usage) add(d demand) {
	if u.amounts == nil {
		u.amounts = map[corev1.ResourceName]int64{}
	}
	u.pods++
	for name, v := range d.amounts {
		u.amounts[name] += v
	}
	u.ports = append(u.ports, d.ports...)
}

func (u *usage) remove(d demand) {
	u.pods--
	for name, v := range d.amounts {
		u.amounts[name] -= v
	}
	for _, p := range d.ports {
		if i := slices.Index(u.ports, p); i >= 0 {
			u.ports = slices.Delete(u.ports, i, i+1)
		}
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
