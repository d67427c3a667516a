package reservation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// besideOthers rejects a node for a pod if it would leave too little room there for holders that keep
// only their requests, or for node-bound pods that have not been tried yet. The latter do not count
// if the pod is node-bound itself or holds the node. A plan for a node-bound pod is not rejected
// here: it counts the holders that are before it.
func (pl *Plugin) besideOthers(s *store.Store, holds *reservations.View, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	name := node.Node().Name
	first := goFirst(s, node)
	if len(first) == 0 && !holds.Concerns(name, pod.UID) {
		return nil
	}
	p := pl.inHolds(pod, name)
	if p.Required && isPlan(state) {
		return nil
	}
	kept := holds.Keeping(name, p)
	if h, ok := holds.Of(pod.UID); p.Required || ok && h.Node == name {
		first = nil
	}
	if len(kept)+len(first) == 0 {
		return nil
	}
	request, left := informer.Requests(pod, app.Requests()), free(node)
	if !left.Covers(request) {
		return nil // other filters report this
	}
	if len(kept) > 0 {
		left = besideHolds(kept, node)
	}
	if !left.Covers(request) {
		pl.process.KeptOff(name, pod)
		if LeavesRoom(s.Holds(), p, pod, node) {
			return nil // a hold ended before the wait was recorded: no event would requeue the pod
		}
		return keptFor("node %s keeps room for pods that hold it, the first of them %s/%s", name, kept[0].Namespace, kept[0].Name)
	}
	return pl.besideFirst(s, pod, node, first, left, request)
}

// besideFirst rejects a node for a pod if it would take room there of pods that go first.
func (pl *Plugin) besideFirst(s *store.Store, pod *corev1.Pod, node fwk.NodeInfo, first []*store.NodeBoundPod, left, request resources.Vector) *fwk.Status {
	name, holds := node.Node().Name, s.Holds()
	for _, p := range first {
		h, holdsNode := holds.Of(p.UID)
		if isOn(node, p.UID) || holdsNode && h.Node == name || !left.Covers(p.Request) {
			continue // its room is set aside already, or it has none
		}
		if left = left.Sub(p.Request); left.Covers(request) {
			continue
		}
		pl.process.KeptOff(name, pod)
		if !slices.ContainsFunc(goFirst(s, node), func(now *store.NodeBoundPod) bool { return now.UID == p.UID }) {
			return nil // they were tried before the wait was recorded: no event would requeue the pod
		}
		return keptFor("node %s has room for pod %s/%s first, which can run there only", name, p.Namespace, p.Name)
	}
	return nil
}

// keptFor is the rejection of a node that is kept, or some of its room, for another pod.
func keptFor(format, node, namespace, name string) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasons.New(reasons.NodeHeld, format, node, namespace, name).String())
}

// goFirst returns the node-bound pods of a node that have not been tried yet.
func goFirst(s *store.Store, node fwk.NodeInfo) []*store.NodeBoundPod {
	bound := s.NodeBound(node.Node().Name)
	if bound == nil {
		return nil
	}
	return bound.GoFirst(informer.Allocatable(node.Node()))
}

// LeavesRoom tells whether a pod leaves enough room for the holders that keep their requests from it.
func LeavesRoom(holds *reservations.View, p reservations.Pod, pod *corev1.Pod, node fwk.NodeInfo) bool {
	kept := holds.Keeping(node.Node().Name, p)
	return len(kept) == 0 || besideHolds(kept, node).Covers(informer.Requests(pod, app.Requests()))
}

// besideHolds returns what a pod may use of the free room of a node beside holders. It sets the
// requests of those that are on the node to zero.
func besideHolds(holders []reservations.Hold, node fwk.NodeInfo) resources.Vector {
	there := map[types.UID]*corev1.Pod{}
	for _, p := range node.GetPods() {
		there[p.GetPod().UID] = p.GetPod()
	}
	for i := range holders {
		if there[holders[i].Asker] != nil {
			holders[i].Request = resources.Vector{} // it is counted on the node
		}
	}
	return reservations.LeftBeside(free(node), holders, func(uid types.UID) resources.Vector {
		if pod := there[uid]; pod != nil {
			return informer.Requests(pod, app.Requests())
		}
		return resources.Vector{}
	})
}

// isOn reports whether the scheduler's snapshot has a pod on a node.
func isOn(node fwk.NodeInfo, uid types.UID) bool {
	return slices.ContainsFunc(node.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().UID == uid })
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
