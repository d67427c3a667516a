package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A node-bound pod (it can run on one node only) goes before other pods there (D0). It
// counts on its node until it was tried there, for nodeBoundFor at most: the filter of
// NodeReservation leaves its room to it. It counts again when its node comes or changes.
//
//	exists, has no node ──► counts ──── tried, or time-out ──────────► no longer counts
//	                          ▲                                             │
//	                          └────────── its node comes or changes ────────┘
//
// After it was tried and found no room, it either holds its node or cannot have it (D1).

// nodeBoundFor is how long a pod counts without being tried.
const nodeBoundFor = 10 * time.Second

// NodeBoundPod is a node-bound pod that was not tried yet.
type NodeBoundPod struct {
	objects.Ref
	Request  resources.Vector
	Priority int32
	Created  time.Time
}

// nodeBound has all pending node-bound pods.
type nodeBound struct {
	pods map[types.UID]*boundTo
	on   map[string]map[types.UID]*boundTo
	// shown has the counting pods by node. The lists are immutable, and filters read them
	// without a lock. size is the number of nodes in shown.
	shown sync.Map
	size  atomic.Int64
	ends  []boundEnd // by time; an entry with another time than its pod is obsolete
}

type boundTo struct {
	NodeBoundPod
	node   string
	since  time.Time
	counts bool
}

type boundEnd struct {
	uid   types.UID
	since time.Time
}

// follow handles an event of a pod, and tells whether its node has more room for others.
func (b *nodeBound) follow(p *objects.Pod, now time.Time) (node string, freed bool) {
	waits := p.RequiredNode != "" && p.Node == "" && !p.Gated && !p.Deleting && !p.Terminal && (!p.Foreign || p.Peer)
	old := b.pods[p.UID]
	if !waits {
		return b.forget(p.UID)
	}
	if old != nil && old.node == p.RequiredNode && old.Request.Equal(p.Request) && old.Priority == p.Priority {
		return "", false
	}
	node, freed = b.forget(p.UID)
	x := &boundTo{NodeBoundPod{p.Ref(), p.Request, p.Priority, p.Created}, p.RequiredNode, now, true}
	if b.pods == nil {
		b.pods, b.on = map[types.UID]*boundTo{}, map[string]map[types.UID]*boundTo{}
	}
	if b.on[x.node] == nil {
		b.on[x.node] = map[types.UID]*boundTo{}
	}
	b.pods[x.UID], b.on[x.node][x.UID] = x, x
	b.ends = append(b.ends, boundEnd{x.UID, now})
	b.show(x.node)
	return node, freed
}

// forget removes a pod.
func (b *nodeBound) forget(uid types.UID) (node string, freed bool) {
	x := b.pods[uid]
	if x == nil {
		return "", false
	}
	delete(b.pods, uid)
	delete(b.on[x.node], uid)
	if len(b.on[x.node]) == 0 {
		delete(b.on, x.node)
	}
	b.show(x.node)
	return x.node, x.counts
}

// tried notes that a pod was tried on its node.
func (b *nodeBound) tried(uid types.UID) (node string, freed bool) {
	x := b.pods[uid]
	if x == nil || !x.counts {
		return "", false
	}
	x.counts = false
	b.show(x.node)
	return x.node, true
}

// renew makes the pods of a node count again from now on.
func (b *nodeBound) renew(node string, now time.Time) {
	if len(b.on[node]) == 0 {
		return
	}
	for uid, x := range b.on[node] {
		x.counts, x.since = true, now
		b.ends = append(b.ends, boundEnd{uid, now})
	}
	b.show(node)
}

// due is when the time of a pod may be over; zero for never.
func (b *nodeBound) due() time.Time {
	if len(b.ends) == 0 {
		return time.Time{}
	}
	return b.ends[0].since.Add(nodeBoundFor)
}

// expire ends the time of pods, and returns their nodes.
func (b *nodeBound) expire(now time.Time) []string {
	var nodes []string
	for len(b.ends) > 0 && !b.due().After(now) {
		end := b.ends[0]
		b.ends = b.ends[1:]
		if x := b.pods[end.uid]; x != nil && x.since.Equal(end.since) {
			if node, freed := b.tried(end.uid); freed {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// show publishes the counting pods of a node.
func (b *nodeBound) show(node string) {
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

// check verifies what is published.
func (b *nodeBound) check() error {
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

// NodeBound returns the pods that can run only on this node, wait, and were not tried
// there, in their order. It takes no lock.
func (s *Store) NodeBound(node string) []NodeBoundPod {
	if s.nodeBound.size.Load() == 0 {
		return nil
	}
	list, _ := s.nodeBound.shown.Load(node)
	pods, _ := list.([]NodeBoundPod)
	return pods
}

// AnyNodeBound tells whether any node has such pods.
func (s *Store) AnyNodeBound() bool { return s.nodeBound.size.Load() > 0 }

// mayTryAgain notes that pods that were refused a node because of a node-bound pod may
// try again.
func (s *Store) mayTryAgain(node string, freed bool) {
	if freed {
		s.vacated = append(s.vacated, node)
	}
}
