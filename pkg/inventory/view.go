package inventory

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Pod is a pod at the moment of a view.
type Pod struct {
	*output.PodRecord
	agreed atomic.Pointer[corev1.Pod]

	inApp, inNode int32 // indexes in the lists of its application and node, guarded by Inventory.mu
}

// Agree notes that this version of the pod equals the API server's. Both are immutable.
func (p *Pod) Agree(listed *corev1.Pod) { p.agreed.Store(listed) }

// Agrees tells whether Agree was called with this version.
func (p *Pod) Agrees(listed *corev1.Pod) bool { return p.agreed.Load() == listed }

// Application is an application with its pods. Immutable.
type Application struct {
	*output.AppRecord
	// Allocations have a node, Requests have none; the oldest first, then by UID.
	Allocations, Requests []*Pod
}

// Highest is the highest priority of its pods that have no node; the lowest 32-bit number if
// all have one.
func (a *Application) Highest() int64 {
	highest := int64(math.MinInt32)
	for _, p := range a.Requests {
		highest = max(highest, int64(p.Priority))
	}
	return highest
}

// Node is a node with the pods on it. Immutable.
type Node struct {
	output.NodeRecord
	// Allocated is the usage of pods of queues, Occupied that of foreign pods.
	Allocated, Occupied resources.Vector
	// Allocations are the pods of queues, Foreign the foreign pods; the oldest first, then by UID.
	Allocations, Foreign []*Pod
}

// Available is the free capacity of the node; negative if its pods request more than it has.
func (n *Node) Available() resources.Vector {
	return n.Allocatable.Sub(n.Allocated).Sub(n.Occupied)
}

// tenth is the index in Tenths of the node for a resource.
func (n *Node) tenth(resource string) int {
	used, most := n.Allocated.Get(resource), n.Allocatable.Get(resource)
	for i := range resources.Amount(9) {
		// No product overflows.
		if used <= most/10*(i+1)+most%10*(i+1)/10 {
			return int(i)
		}
	}
	return 9
}

// View is everything at one moment. Immutable.
type View struct {
	output.Rest
	// Applications are those with a queue and with pods; the first submitted first, then by
	// namespace, ID and queue.
	Applications []*Application
	// Nodes are sorted by name.
	Nodes []*Node
	// Unplaced are the pods without a queue; the oldest first, then by UID.
	Unplaced []*Pod
	// InHolds are the pods that holds are about: the askers, their victims, and what else they
	// wait for. Every victim is of a hold.
	InHolds map[types.UID]*Pod
}

// Tenths are the names of the nodes, by type of resource and by the share that pods of
// queues use: at 0 for at most one tenth, at 9 for more than nine. A node without a type is
// not listed for it.
func (v *View) Tenths() map[string]*[10][]string {
	out := map[string]*[10][]string{}
	for _, n := range v.Nodes {
		for name, most := range n.Allocatable.All() {
			if most <= 0 {
				continue
			}
			if out[name] == nil {
				out[name] = &[10][]string{}
			}
			at := n.tenth(name)
			out[name][at] = append(out[name][at], n.Name)
		}
	}
	return out
}

// InQueue returns the applications of a queue itself, in the order of the view.
func (v *View) InQueue(path string) []*Application {
	var out []*Application
	for _, a := range v.Applications {
		if a.Queue == path {
			out = append(out, a)
		}
	}
	return out
}

// UnplacedApplications returns the wanted pods without a queue, grouped by the application
// that they would be in, in the order of the view.
func (v *View) UnplacedApplications(wanted func(*Pod) bool) [][]*Pod {
	type name struct{ namespace, id, queue string }
	places := map[name]int{}
	var out [][]*Pod
	for _, p := range v.Unplaced {
		if !wanted(p) {
			continue
		}
		of := name{namespace: p.Namespace, id: p.Wanted.Application}
		if p.Wanted.Shared { // its ID was generated
			of.queue = p.Wanted.Queue
		}
		at, known := places[of]
		if !known {
			at = len(out)
			places[of], out = at, append(out, nil)
		}
		out[at] = append(out[at], p)
	}
	return out
}

// Preempting is the usage of the victims that still exist, by queue.
func (v *View) Preempting() map[queues.ID]resources.Vector {
	out := map[queues.ID]resources.Vector{}
	for _, p := range v.InHolds {
		leaf, ok := v.Queues.Find(p.Queue)
		if !ok || !p.Preempted {
			continue
		}
		for q := range v.Queues.Ancestors(leaf.ID) {
			out[q.ID] = out[q.ID].Add(p.Request)
		}
	}
	return out
}

// Node returns the node with the name; nil if there is none.
func (v *View) Node(name string) *Node {
	at, found := slices.BinarySearchFunc(v.Nodes, name, func(n *Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return nil
	}
	return v.Nodes[at]
}

func oldestFirst(a, b *Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

func firstSubmitted(a, b *Application) int {
	return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.ID, b.ID), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Serial, b.Serial))
}
