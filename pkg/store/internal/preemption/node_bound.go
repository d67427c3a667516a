package preemption

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A node-bound pod (it can run on one node only) goes before other pods there (D0). It
// counts on its node until it was tried there, for NodeBoundFor at most: the filter of
// NodeReservation leaves its room to it. It counts again when its node comes or changes.
//
//	exists, has no node ──► counts ──── tried, or time-out ──────────► no longer counts
//	                          ▲                                             │
//	                          └────────── its node comes or changes ────────┘
//
// After it was tried and found no room, it either holds its node or cannot have it (D1).

// NodeBoundFor is how long a pod counts without being tried.
const NodeBoundFor = 10 * time.Second

// NodeBoundPod is a node-bound pod that was not tried yet.
type NodeBoundPod struct {
	objects.Ref
	Request  resources.Vector
	Priority int32
	Created  time.Time
}

// NodeBound has all pending node-bound pods. Its zero value is ready.
type NodeBound struct {
	pods map[types.UID]*boundTo
	on   map[string]map[types.UID]*boundTo
	// shown has the counting pods by node. The lists are immutable, and filters read them
	// without a lock. size is the number of nodes in shown.
	shown   sync.Map
	size    atomic.Int64
	ends    []boundEnd          // by time; an entry with another time than its pod is obsolete
	changed map[string]struct{} // awaited nodes that changed
}

type boundTo struct {
	NodeBoundPod
	node   string
	since  time.Time
	counts bool
	awaits bool // a change of its node brings it back
}

type boundEnd struct {
	uid   types.UID
	since time.Time
}

// Update handles an event of a pod. It returns the pod's node if that has more room for
// others now, and "" otherwise, as Remove and Tried do.
func (b *NodeBound) Update(p *objects.Pod, now time.Time) (freed string) {
	waits := p.RequiredNode != "" && p.Node == "" && !p.Gated && !p.Deleting && !p.Terminal && (!p.Foreign || p.Peer)
	old := b.pods[p.UID]
	if waits && old != nil && old.node == p.RequiredNode && old.Request.Equal(p.Request) && old.Priority == p.Priority {
		return ""
	}
	freed = b.Remove(p.UID)
	if !waits {
		return freed
	}
	x := &boundTo{NodeBoundPod: NodeBoundPod{p.Ref(), p.Request, p.Priority, p.Created}, node: p.RequiredNode, since: now, counts: true}
	if b.pods == nil {
		b.pods, b.on, b.changed = map[types.UID]*boundTo{}, map[string]map[types.UID]*boundTo{}, map[string]struct{}{}
	}
	if b.on[x.node] == nil {
		b.on[x.node] = map[types.UID]*boundTo{}
	}
	b.pods[x.UID], b.on[x.node][x.UID] = x, x
	b.ends = append(b.ends, boundEnd{x.UID, now})
	b.show(x.node)
	return freed
}

// Remove removes a pod.
func (b *NodeBound) Remove(uid types.UID) (freed string) {
	freed = b.Tried(uid)
	if x := b.pods[uid]; x != nil {
		delete(b.pods, uid)
		delete(b.on[x.node], uid)
		if len(b.on[x.node]) == 0 {
			delete(b.on, x.node)
		}
	}
	return freed
}

// Tried notes that a pod was tried on its node.
func (b *NodeBound) Tried(uid types.UID) (freed string) {
	x := b.pods[uid]
	if x == nil || !x.counts {
		return ""
	}
	x.counts = false
	b.show(x.node)
	return x.node
}

// Await sets whether a pod is brought back when its node changes.
func (b *NodeBound) Await(uid types.UID, awaits bool) {
	if x := b.pods[uid]; x != nil {
		x.awaits = awaits
	}
}

// Awaits tells whether a pod is brought back when its node changes.
func (b *NodeBound) Awaits(uid types.UID) bool {
	x := b.pods[uid]
	return x != nil && x.awaits
}

// All yields all pods, in no particular order.
func (b *NodeBound) All() iter.Seq[types.UID] { return maps.Keys(b.pods) }

// Change notes that a node changed for plans.
func (b *NodeBound) Change(node string) {
	for _, x := range b.on[node] {
		if x.awaits {
			b.changed[node] = struct{}{}
			return
		}
	}
}

// TakeChanged returns the pods that await a node which changed since the last call, by node
// and UID. They go on waiting.
func (b *NodeBound) TakeChanged() (out []types.UID) {
	if len(b.changed) == 0 {
		return nil // the usual case, after each change of the store
	}
	for _, node := range slices.Sorted(maps.Keys(b.changed)) {
		for _, uid := range slices.Sorted(maps.Keys(b.on[node])) {
			if b.on[node][uid].awaits {
				out = append(out, uid)
			}
		}
	}
	clear(b.changed)
	return out
}

// Renew makes the pods of a node count again from now on.
func (b *NodeBound) Renew(node string, now time.Time) {
	if len(b.on[node]) == 0 {
		return
	}
	for uid, x := range b.on[node] {
		x.counts, x.since = true, now
		b.ends = append(b.ends, boundEnd{uid, now})
	}
	b.show(node)
}

// Due is when the time of a pod may be over; zero for never.
func (b *NodeBound) Due() time.Time {
	if len(b.ends) == 0 {
		return time.Time{}
	}
	return b.ends[0].since.Add(NodeBoundFor)
}

// Expire ends the time of pods, and returns their nodes.
func (b *NodeBound) Expire(now time.Time) []string {
	var nodes []string
	for len(b.ends) > 0 && !b.Due().After(now) {
		end := b.ends[0]
		b.ends = b.ends[1:]
		if x := b.pods[end.uid]; x != nil && x.since.Equal(end.since) {
			if node := b.Tried(end.uid); node != "" {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// show publishes the counting pods of a node.
func (b *NodeBound) show(node string) {
	var list []NodeBoundPod
	for _, x := range b.on[node] {
		if x.counts {
			list = append(list, x.NodeBoundPod)
		}
	}
	_, had := b.shown.Load(node)
	switch {
	case len(list) > 0:
		slices.SortFunc(list, func(x, y NodeBoundPod) int {
			return cmp.Or(cmp.Compare(y.Priority, x.Priority), x.Created.Compare(y.Created), cmp.Compare(x.UID, y.UID))
		})
		b.shown.Store(node, list)
		if !had {
			b.size.Add(1)
		}
	case had:
		b.shown.Delete(node)
		b.size.Add(-1)
	}
}

// Check verifies what is published.
func (b *NodeBound) Check() error {
	counting, shown := map[string]int{}, map[string]int{}
	for uid, x := range b.pods {
		if b.on[x.node][uid] != x {
			return fmt.Errorf("node-bound pods: node %s does not know %s", x.node, x.Name)
		}
		if x.counts {
			counting[x.node]++
		}
	}
	b.shown.Range(func(node, list any) bool {
		shown[node.(string)] = len(list.([]NodeBoundPod))
		return true
	})
	if !maps.Equal(counting, shown) || int(b.size.Load()) != len(shown) {
		return fmt.Errorf("node-bound pods: %v count, %v are shown, on %d nodes", counting, shown, b.size.Load())
	}
	return nil
}

// On returns the counting pods of a node, in their order. It may be called at any time.
func (b *NodeBound) On(node string) []NodeBoundPod {
	if !b.Any() {
		return nil
	}
	list, _ := b.shown.Load(node)
	pods, _ := list.([]NodeBoundPod)
	return pods
}

// Any tells whether any pod counts. It may be called at any time.
func (b *NodeBound) Any() bool { return b.size.Load() > 0 }
