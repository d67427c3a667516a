package reservation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// afterNodeBound rejects a node for a pod if node-bound pods of that node have not been
// tried yet and would not fit beside the pod. Capacity for a pod that holds the node is
// already set aside.
func (pl *Plugin) afterNodeBound(s *store.Store, holds *reservations.View, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	name := node.Node().Name
	bound := s.NodeBound(name)
	if bound == nil || pl.process.RequiredNode(pod) == name {
		return nil
	}
	allocatable := informer.Allocatable(node.Node())
	first := bound.GoFirst(allocatable)
	if len(first) == 0 {
		return nil
	}
	if h, ok := holds.Of(pod.UID); ok && h.Node == name {
		return nil
	}
	request, left := informer.Requests(pod, app.Requests()), free(node)
	if !left.Covers(request) {
		return nil // other filters report this
	}
	for _, p := range first {
		onNode := slices.ContainsFunc(node.GetPods(), func(pi fwk.PodInfo) bool { return pi.GetPod().UID == p.UID })
		if onNode || !left.Covers(p.Request) {
			continue
		}
		if left = left.Sub(p.Request); left.Covers(request) {
			continue
		}
		pl.process.KeptOff(name, pod)
		goesFirst := func(now store.NodeBoundPod) bool { return now.UID == p.UID }
		if bound = s.NodeBound(name); bound == nil || !slices.ContainsFunc(bound.GoFirst(allocatable), goesFirst) {
			return nil // they were tried before the wait was recorded: no event would requeue the pod
		}
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasons.New(reasons.NodeHeld,
			"node %s has room for pod %s/%s first, which can run there only", name, p.Namespace, p.Name).String())
	}
	return nil
}

// free returns what the scheduler's snapshot shows as free on a node.
func free(node fwk.NodeInfo) resources.Vector {
	has, used := node.GetAllocatable(), node.GetRequested()
	entries := []resources.Entry{
		{Name: resources.CPU, Amount: resources.Amount(has.GetMilliCPU() - used.GetMilliCPU())},
		{Name: string(corev1.ResourceMemory), Amount: resources.Amount(has.GetMemory() - used.GetMemory())},
		{Name: string(corev1.ResourceEphemeralStorage), Amount: resources.Amount(has.GetEphemeralStorage() - used.GetEphemeralStorage())},
		{Name: resources.Pods, Amount: resources.Amount(has.GetAllowedPodNumber() - len(node.GetPods()))},
	}
	for name, amount := range has.GetScalarResources() {
		entries = append(entries, resources.Entry{Name: string(name), Amount: resources.Amount(amount - used.GetScalarResources()[name])})
	}
	return resources.VectorOf(entries...)
}
