package preemption

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A node-bound pod (it can run on one node only) goes before other pods there (D0). While it
// counts, the filter of NodeReservation keeps its room for it. It counts while it may be tried and
// was not tried yet. It may count again when its node comes or changes.
//
//	may not be tried ◄───► counts ──── its cycle ended ──► was tried
//	       ▲                  │                               │
//	       ├──────────────────┘ the time is used up           │
//	       └───────────── its node comes or changes ──────────┘
//
// The pods of one namespace count on a node for NodeBoundFor in each NodeBoundEvery, all
// together, and for NodeBoundFor again when the node comes or changes. Without a bound for
// all of them, new pods could follow each other and close the node for ever.
//
// After it was tried and found no room, it either holds its node or cannot have it (D1).

// The pods of a namespace count on a node for NodeBoundFor in each NodeBoundEvery.
const (
	NodeBoundFor   = 10 * time.Second
	NodeBoundEvery = 10 * time.Minute
)

// NodeBoundPod is a node-bound pod that was not tried yet.
type NodeBoundPod struct {
	objects.Ref
	Request resources.Vector
	Key     order.AskKey // orders the pods of a node as their holds; see reservations.Hold.Before
}

// NodeBound has all pending node-bound pods. Make one with NewNodeBound.
type NodeBound struct {
	pods map[types.UID]*boundTo
	on   map[string][]*boundTo // in their order
	// shown has a *NodeBoundOn of each node with pods. Filters read it without a lock. nodes is
	// the number of these nodes, and size the number of those on which pods count.
	shown   sync.Map
	nodes   atomic.Int64
	size    atomic.Int64
	toShow  map[string]struct{}              // nodes of which shown is out of date
	times   map[string]map[string]*boundTime // by node and namespace
	ends    ranking.Heap[*boundTime]         // by when
	inOrder map[types.UID]*boundTo           // counting pods that wait in the order
	noted   map[types.UID]struct{}           // pods to judge again
	leaves  map[queues.ID]struct{}           // and those of inOrder that wait in these leaves
}

type boundTo struct {
	NodeBoundPod
	node   string
	leaf   queues.ID // where it waits in the order while it counts; NoQueue if it does not
	tried  bool      // its cycle ended, whether it counted or not
	counts bool      // never together with tried
}

// boundTime is how long the pods of a namespace counted on a node.
type boundTime struct {
	nodeOf
	allowance           // its users are the pods that count
	when      time.Time // when it is used up; the end of the period if no pod counts
	at        int
}

// Place implements the interface of package ranking.
func (t *boundTime) Place() *int { return &t.at }

// NewNodeBound returns no pods.
func NewNodeBound() *NodeBound {
	return &NodeBound{
		pods:    map[types.UID]*boundTo{},
		toShow:  map[string]struct{}{},
		on:      map[string][]*boundTo{},
		times:   map[string]map[string]*boundTime{},
		inOrder: map[types.UID]*boundTo{},
		noted:   map[types.UID]struct{}{},
		leaves:  map[queues.ID]struct{}{},
		ends: ranking.New(func(a, b *boundTime) bool {
			return cmp.Or(a.when.Compare(b.when), cmp.Compare(a.node, b.node), cmp.Compare(a.namespace, b.namespace)) < 0
		}),
	}
}

// Update handles an event of a pod. It returns the pod's node if that has more room for
// others now, and "" otherwise, as Remove, Tried and SetMayBeTried do.
func (b *NodeBound) Update(p *objects.Pod, now time.Time) (freed string) {
	waits := p.RequiredNode != "" && p.Node == "" && !p.Gated && !p.Deleting && !p.Terminal && (!p.Foreign || p.Peer)
	old := b.pods[p.UID]
	if waits && old != nil && old.node == p.RequiredNode && old.Request.Equal(p.Request) && old.Key.Priority == p.Priority {
		return ""
	}
	freed = b.Remove(p.UID, now)
	if !waits {
		return freed
	}
	key := order.AskKey{Priority: p.Priority, Created: p.Created, UID: string(p.UID)}
	x := &boundTo{NodeBoundPod: NodeBoundPod{p.Ref(), p.Request, key}, node: p.RequiredNode, leaf: queues.NoQueue}
	b.pods[x.UID] = x
	at, _ := slices.BinarySearchFunc(b.on[x.node], x, compareThere)
	b.on[x.node] = slices.Insert(b.on[x.node], at, x)
	b.toShow[x.node] = struct{}{}
	b.Note(x.UID)
	return freed
}

// Remove removes a pod.
func (b *NodeBound) Remove(uid types.UID, now time.Time) (freed string) {
	freed = b.Tried(uid, now)
	if x := b.pods[uid]; x != nil {
		delete(b.pods, uid)
		delete(b.noted, uid)
		at, _ := slices.BinarySearchFunc(b.on[x.node], x, compareThere)
		b.on[x.node] = slices.Delete(b.on[x.node], at, at+1)
		b.toShow[x.node] = struct{}{}
		if len(b.on[x.node]) == 0 {
			delete(b.on, x.node)
		}
	}
	return freed
}

// Note notes that whether a pod may be tried has to be judged again.
func (b *NodeBound) Note(uid types.UID) {
	if b.pods[uid] != nil {
		b.noted[uid] = struct{}{}
	}
}

// NoteInOrder notes the counting pods that wait in the order of a leaf. TakeNoted looks for them,
// once for all leaves: one change may note thousands of leaves.
func (b *NodeBound) NoteInOrder(leaf queues.ID) { b.leaves[leaf] = struct{}{} }

// NoteAll notes all pods.
func (b *NodeBound) NoteAll() {
	for uid := range b.pods {
		b.Note(uid)
	}
}

// TakeNoted returns the pods that were noted since the last call, by UID.
func (b *NodeBound) TakeNoted() []types.UID {
	if len(b.leaves) > 0 {
		for uid, x := range b.inOrder {
			if _, noted := b.leaves[x.leaf]; noted {
				b.Note(uid)
			}
		}
		clear(b.leaves)
	}
	out := slices.Sorted(maps.Keys(b.noted))
	clear(b.noted)
	return out
}

// Tried notes that a pod was tried on its node.
func (b *NodeBound) Tried(uid types.UID, now time.Time) (freed string) {
	if x := b.pods[uid]; x != nil {
		x.tried = true
	}
	return b.stop(uid, now)
}

// SetMayBeTried sets whether a pod may be tried. If so, it counts unless it was tried or the time
// of its namespace is used up. leaf is the queue that has it in its order, or NoQueue.
func (b *NodeBound) SetMayBeTried(uid types.UID, may bool, leaf queues.ID, now time.Time) (freed string) {
	x := b.pods[uid]
	switch {
	case x == nil:
		return ""
	case !may || x.tried:
		return b.stop(uid, now)
	case !x.counts && !b.start(x, now):
		return ""
	}
	b.setLeaf(x, leaf)
	return ""
}

// start makes a pod count, if its namespace has time left on its node.
func (b *NodeBound) start(x *boundTo, now time.Time) bool {
	t := b.timeOf(x, now)
	if t.usersNow == 0 {
		if t.usedBefore >= NodeBoundFor {
			return false
		}
		b.due(t, now.Add(NodeBoundFor-t.usedBefore))
	}
	t.enter(now)
	x.counts = true
	b.toShow[x.node] = struct{}{}
	return true
}

// timeOf returns the time of a pod's namespace on its node.
func (b *NodeBound) timeOf(x *boundTo, now time.Time) *boundTime {
	on := b.times[x.node]
	if on == nil {
		on = map[string]*boundTime{}
		b.times[x.node] = on
	}
	t := on[x.Namespace]
	if t == nil {
		t = &boundTime{nodeOf: nodeOf{x.node, x.Namespace}, at: ranking.Outside}
		on[x.Namespace] = t
	}
	t.beginPeriod(NodeBoundEvery, now)
	return t
}

// stop makes a pod not count.
func (b *NodeBound) stop(uid types.UID, now time.Time) (freed string) {
	x := b.pods[uid]
	if x == nil || !x.counts {
		return ""
	}
	x.counts = false
	b.setLeaf(x, queues.NoQueue)
	t := b.times[x.node][x.Namespace]
	if t.leave(now); t.usersNow == 0 {
		b.due(t, t.periodEnds)
	}
	b.toShow[x.node] = struct{}{}
	return x.node
}

// due sets when something is due for a namespace.
func (b *NodeBound) due(t *boundTime, when time.Time) {
	t.when = when
	b.ends.Update(t, true)
}

// setLeaf sets the leaf in the order of which a counting pod waits; NoQueue for none.
func (b *NodeBound) setLeaf(x *boundTo, leaf queues.ID) {
	if x.leaf = leaf; leaf == queues.NoQueue {
		delete(b.inOrder, x.UID)
	} else {
		b.inOrder[x.UID] = x
	}
}

// All yields all pods, in no particular order.
func (b *NodeBound) All() iter.Seq[types.UID] { return maps.Keys(b.pods) }

// Reset handles a change of a node. It grants all pods of the node their time again from now
// on, whether they were tried or not.
func (b *NodeBound) Reset(node string, now time.Time) {
	b.toShow[node] = struct{}{}
	for _, x := range b.on[node] {
		x.tried = false
		b.Note(x.UID)
	}
	for _, t := range b.times[node] {
		if t.usersNow == 0 {
			b.forget(t)
			continue
		}
		t.usedBefore, t.inUseSince, t.periodEnds = 0, now, now.Add(NodeBoundEvery)
		b.due(t, now.Add(NodeBoundFor))
	}
}

// ResetAll is Reset for all nodes.
func (b *NodeBound) ResetAll(now time.Time) {
	for node := range b.times {
		b.Reset(node, now)
	}
	for node := range b.on {
		b.Reset(node, now)
	}
}

// forget grants a namespace all of its time on a node again.
func (b *NodeBound) forget(t *boundTime) {
	b.ends.Update(t, false)
	if delete(b.times[t.node], t.namespace); len(b.times[t.node]) == 0 {
		delete(b.times, t.node)
	}
}

// Due is when the time of a namespace may be over, or is granted again; zero for never.
func (b *NodeBound) Due() time.Time {
	if t, ok := b.ends.First(); ok {
		return t.when
	}
	return time.Time{}
}

// Expire ends the time of namespaces, or grants it again. It returns the nodes where it ended.
func (b *NodeBound) Expire(now time.Time) []string {
	var nodes []string
	for t, ok := b.ends.First(); ok && !t.when.After(now); t, ok = b.ends.First() {
		over := t.usersNow > 0
		for _, x := range b.on[t.node] {
			switch {
			case x.Namespace != t.namespace:
			case over:
				b.stop(x.UID, now)
			default:
				b.Note(x.UID)
			}
		}
		if over {
			nodes = append(nodes, t.node)
		} else {
			b.forget(t)
		}
	}
	return nodes
}

// Check verifies what is published, and the times of namespaces.
func (b *NodeBound) Check() error {
	return errors.Join(b.checkShown(), b.checkInOrder(), b.checkTimes(), b.ends.Check())
}

func (b *NodeBound) checkInOrder() error {
	for uid, x := range b.pods {
		if in := b.inOrder[uid] == x; in != (x.leaf != queues.NoQueue) || in && !x.counts {
			return fmt.Errorf("node-bound pods: %s waits in the order of queue %d: %v, and counts: %v", x.Name, x.leaf, in, x.counts)
		}
	}
	for uid, x := range b.inOrder {
		if b.pods[uid] != x {
			return fmt.Errorf("node-bound pods: %s in the order is not known", x.Name)
		}
	}
	return nil
}

func (b *NodeBound) checkTimes() error {
	counting := map[nodeOf]int{}
	for _, x := range b.pods {
		if x.counts {
			counting[nodeOf{x.node, x.Namespace}]++
		}
	}
	for _, t := range b.ends.Items() {
		if counting[t.nodeOf] != t.usersNow || b.times[t.node][t.namespace] != t {
			return fmt.Errorf("node-bound pods: %d of namespace %s count on node %s, there are %d", t.usersNow, t.namespace, t.node, counting[t.nodeOf])
		}
		delete(counting, t.nodeOf)
	}
	if len(counting) > 0 {
		return fmt.Errorf("node-bound pods: the times of %v are missing", counting)
	}
	return nil
}

// Counts tells whether a pod counts.
func (b *NodeBound) Counts(uid types.UID) bool {
	x := b.pods[uid]
	return x != nil && x.counts
}
