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
// if the pod is node-bound itself or holds the node.
func (pl *Plugin) besideOthers(holds *reservations.View, p reservations.Pod, pod *corev1.Pod, node fwk.NodeInfo, first []*store.NodeBoundPod) *fwk.Status {
	name := node.Node().Name
	kept := holds.Keeping(name, p)
	if h, ok := holds.Of(pod.UID); p.Required || ok && h.Node == name {
		first = nil
	}
	if len(kept)+len(first) == 0 {
		return nil
	}
	request := informer.Requests(pod, app.Requests())
	if !free(node).Covers(request) {
		return nil // other filters report this
	}
	room := roomOn(node)
	if !room.beside(kept).Covers(request) {
		return pl.keptFor(pod, "node %s keeps room for pods that hold it, the first of them %s/%s", name, kept[0].Namespace, kept[0].Name)
	}
	return pl.besideFirst(holds, pod, name, room, kept, first)
}

// besideFirst rejects a node for a pod if it would take room there of pods that go first. Each of these
// has its place among the holders, as if it held the node: it has the room that those before it leave.
func (pl *Plugin) besideFirst(holds *reservations.View, pod *corev1.Pod, node string, room nodeRoom, kept []reservations.Hold, first []*store.NodeBoundPod) *fwk.Status {
	request := informer.Requests(pod, app.Requests())
	for _, p := range first {
		if h, ok := holds.Of(p.UID); ok && h.Node == node || room.there[p.UID] != nil {
			continue // its room is set aside already
		}
		hold := reservations.Hold{Asker: p.UID, Request: p.Request, Priority: p.Key.Priority, Created: p.Key.Created, NodeBound: true}
		at := 0
		for at < len(kept) && kept[at].Before(&hold) {
			at++
		}
		if !room.beside(kept[:at]).Covers(p.Request) {
			continue // it has no room
		}
		if kept = slices.Insert(kept, at, hold); !room.beside(kept).Covers(request) {
			return pl.keptFor(pod, "node %s has room for pod %s/%s first, which can run there only", node, p.Namespace, p.Name)
		}
	}
	return nil
}

// keptFor records that a pod is kept off a node for another one, and returns the rejection.
func (pl *Plugin) keptFor(pod *corev1.Pod, format, node, namespace, name string) *fwk.Status {
	pl.process.KeptOff(node, pod)
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasons.New(reasons.NodeHeld, format, node, namespace, name).String())
}

// checkTwice returns what a check finds. A pod that was recorded by keptFor is requeued once nothing
// keeps it off. What keeps it off may have ended before it was recorded, and then no event would
// requeue it. So a rejection is checked again.
func checkTwice(s *store.Store, check func(*reservations.View) *fwk.Status) *fwk.Status {
	if status := check(s.Holds()); status.IsSuccess() {
		return status
	}
	return check(s.Holds())
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
	return len(kept) == 0 || roomOn(node).beside(kept).Covers(informer.Requests(pod, app.Requests()))
}

// nodeRoom is a node as the scheduler's snapshot shows it.
type nodeRoom struct {
	free  resources.Vector
	there map[types.UID]*corev1.Pod
}

func roomOn(node fwk.NodeInfo) nodeRoom {
	r := nodeRoom{free: free(node), there: map[types.UID]*corev1.Pod{}}
	for _, p := range node.GetPods() {
		r.there[p.GetPod().UID] = p.GetPod()
	}
	return r
}

// beside returns what a pod may use of the free room beside holders. It sets the requests of those that
// are on the node to zero.
func (r nodeRoom) beside(holders []reservations.Hold) resources.Vector {
	for i := range holders {
		if r.there[holders[i].Asker] != nil {
			holders[i].Request = resources.Vector{} // it is counted on the node
		}
	}
	return reservations.LeftBeside(r.free, holders, func(uid types.UID) resources.Vector {
		if pod := r.there[uid]; pod != nil {
			return informer.Requests(pod, app.Requests())
		}
		return resources.Vector{}
	})
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
