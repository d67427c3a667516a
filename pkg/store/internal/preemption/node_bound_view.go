package preemption

import (
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// NodeBoundOn is what filters read of the node-bound pods of a node. Immutable: a NodeBoundPod is
// never written once it is made.
type NodeBoundOn struct {
	allocatable     resources.Vector // that the store knows
	all, goingFirst []*NodeBoundPod  // in their order
}

// GoFirst returns the pods that go first on the node, in their order. allocatable is what the
// caller sees of the node. If the store knows another one, either the store or the caller has not
// seen the latest change of the node, after which tried pods may go first again. Until both agree,
// all pods go first.
func (o *NodeBoundOn) GoFirst(allocatable resources.Vector) []*NodeBoundPod {
	if o.allocatable.Equal(allocatable) {
		return o.goingFirst
	}
	return o.all
}

// On returns what filters read of a node; nil if it has no pods. It may be called at any time.
func (b *NodeBound) On(node string) *NodeBoundOn {
	if b.nodes.Load() == 0 {
		return nil // a lookup in shown for each node takes most of the time of the filter
	}
	o, _ := b.shown.Load(node)
	on, _ := o.(*NodeBoundOn)
	return on
}

// Any tells whether any pod counts. It may be called at any time.
func (b *NodeBound) Any() bool { return b.size.Load() > 0 }

// Publish shows filters the pods of nodes that changed. allocatable returns what the store
// knows of a node.
func (b *NodeBound) Publish(allocatable func(node string) resources.Vector) {
	for node := range b.toShow {
		before, now := b.On(node), b.view(node, allocatable(node))
		if now == nil {
			b.shown.Delete(node)
		} else {
			b.shown.Store(node, now)
		}
		b.size.Add(now.size() - before.size())
	}
	b.nodes.Store(int64(len(b.on)))
	clear(b.toShow)
}

// view returns what filters are to read of a node; nil if it has no pods.
func (b *NodeBound) view(node string, allocatable resources.Vector) *NodeBoundOn {
	if len(b.on[node]) == 0 {
		return nil
	}
	o := &NodeBoundOn{allocatable: allocatable}
	for _, x := range b.on[node] {
		o.all = append(o.all, &x.NodeBoundPod)
		if x.counts {
			o.goingFirst = append(o.goingFirst, &x.NodeBoundPod)
		}
	}
	return o
}

// size is what a node adds to the size of what is shown.
func (o *NodeBoundOn) size() int64 {
	if o == nil || len(o.goingFirst) == 0 {
		return 0
	}
	return 1
}

func (b *NodeBound) checkShown() error {
	if len(b.toShow) > 0 {
		return fmt.Errorf("node-bound pods: filters were not told of %v", slices.Sorted(maps.Keys(b.toShow)))
	}
	type numbers struct{ all, goingFirst int }
	want, shown, size := map[string]numbers{}, map[string]numbers{}, 0
	for _, x := range b.pods {
		if at, _ := slices.BinarySearchFunc(b.on[x.node], x, compareThere); at == len(b.on[x.node]) || b.on[x.node][at] != x {
			return fmt.Errorf("node-bound pods: node %s does not know %s", x.node, x.Name)
		}
		n := want[x.node]
		n.all++
		if x.counts {
			n.goingFirst++
		}
		want[x.node] = n
	}
	b.shown.Range(func(node, on any) bool {
		o := on.(*NodeBoundOn)
		shown[node.(string)] = numbers{len(o.all), len(o.goingFirst)}
		if len(o.goingFirst) > 0 {
			size++
		}
		return true
	})
	if !maps.Equal(want, shown) || int(b.size.Load()) != size || int(b.nodes.Load()) != len(shown) {
		return fmt.Errorf("node-bound pods: filters see %v, want %v, and pods go first on %d nodes, want %d", shown, want, b.size.Load(), size)
	}
	return nil
}

func compareThere(x, y *boundTo) int { return order.CompareAsks(x.Key, y.Key) }
