package order

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Index holds the eligible asks of all queues in hierarchical order. Its owner
// tells it of queues, of what they use, and of asks that come and go.
type Index struct {
	nodes    []*node // by queues.ID, nil where there is none
	capacity resources.Limit
	// stale is set when the capacity changed: every share may be different.
	stale bool
}

// node is a queue in the order.
type node struct {
	id       queues.ID
	settings *queues.Settings
	parent   *node
	used     resources.Vector

	key      QueueKey
	at       int // in parent.children, -1 when it has no eligible ask
	children ranking.Heap[*node]
	apps     ranking.Heap[*App]
	below    priorities // of apps and children that are ranked
	counted  place      // what the parent's below counts for this node
	blocked  map[*Group]struct{}
}

// Place serves the ranking of the parent.
func (n *node) Place() *int { return &n.at }

// NewIndex returns an index without any queue.
func NewIndex() *Index { return &Index{} }

// SetQueue adds a queue, or gives it other settings; the parent comes first.
func (x *Index) SetQueue(id queues.ID, s *queues.Settings) {
	for int(id) >= len(x.nodes) {
		x.nodes = append(x.nodes, nil)
	}
	n := x.nodes[id]
	if n == nil {
		n = &node{id: id, at: -1, blocked: map[*Group]struct{}{}}
		n.children = ranking.New(func(a, b *node) bool {
			return CompareQueues(a.key, b.key, n.settings.Policies.PrioritySort) < 0
		})
		n.apps = ranking.New(func(a, b *App) bool {
			p := n.settings.Policies
			return CompareApps(a.key, b.key, p.ApplicationSort, p.PrioritySort) < 0
		})
		if s.Parent != queues.NoQueue {
			n.parent = x.nodes[s.Parent]
		}
		x.nodes[id] = n
	}
	n.settings = s
	n.key.Path = s.Path
	n.key.Share = x.share(n)
	for _, a := range n.apps.Items() {
		a.key.Share = x.appShare(a)
	}
	n.apps.Restore()
	n.children.Restore()
	x.propagate(n, 0)
}

// RemoveQueue takes out a queue that has no application and no child.
func (x *Index) RemoveQueue(id queues.ID) { x.nodes[id] = nil }

// SetUsed tells what a queue uses and is about to use. Shares of the ancestors
// are told on their own.
func (x *Index) SetUsed(id queues.ID, used resources.Vector) {
	n := x.nodes[id]
	n.used = used
	n.key.Share = x.share(n)
	if n.at >= 0 {
		n.parent.children.Update(n, true)
	}
}

// SetCapacity tells the sum of what the nodes hold, which stands in for a
// guarantee where a queue has none.
func (x *Index) SetCapacity(capacity resources.Vector) {
	x.capacity = resources.LimitFrom(capacity.Map())
	x.stale = true
}

// Next returns the first ask in the order and whether there is one. It does
// not take the ask out.
func (x *Index) Next() (*Ask, bool) {
	if len(x.nodes) == 0 {
		return nil, false
	}
	if x.stale {
		x.reshare()
	}
	n := x.nodes[queues.RootID]
	for {
		// A queue that changed from leaf to parent finishes its own applications first.
		if app, ok := n.apps.First(); ok {
			group, _ := app.groups.First()
			ask, _ := group.asks.First()
			return ask, true
		}
		child, ok := n.children.First()
		if !ok {
			return nil, false
		}
		n = child
	}
}

// Eligible counts the asks that are in the order.
func (x *Index) Eligible() int {
	if len(x.nodes) == 0 {
		return 0
	}
	return x.nodes[queues.RootID].key.Eligible
}

// EligibleAt counts the asks below a queue that are in the order.
func (x *Index) EligibleAt(id queues.ID) int { return x.nodes[id].key.Eligible }

// BlockedAt calls f for every group that is blocked by the queue, in no
// particular order; f may unblock it.
func (x *Index) BlockedAt(id queues.ID, f func(*Group)) {
	for g := range x.nodes[id].blocked {
		f(g)
	}
}

// HasBlocked tells whether the queue blocks any group.
func (x *Index) HasBlocked(id queues.ID) bool { return len(x.nodes[id].blocked) > 0 }

// reshare computes all shares again.
func (x *Index) reshare() {
	x.stale = false
	for _, n := range x.nodes {
		if n == nil {
			continue
		}
		n.key.Share = x.share(n)
		for _, a := range n.apps.Items() {
			a.key.Share = x.appShare(a)
		}
		n.apps.Restore()
	}
	for _, n := range x.nodes {
		if n != nil {
			n.children.Restore()
		}
	}
}

func (x *Index) share(n *node) resources.Share {
	return resources.DominantShare(n.used, n.settings.Guaranteed, n.settings.PathMax, x.capacity)
}

func (x *Index) appShare(a *App) resources.Share {
	s := a.leaf.settings
	return resources.DominantShare(a.used, s.Guaranteed, s.PathMax, x.capacity)
}

// propagate brings the key of a node, below which delta asks became eligible,
// up to date and moves the node, then its ancestors, to where they belong.
func (x *Index) propagate(n *node, delta int) {
	for ; n != nil; n = n.parent {
		n.key.Eligible += delta
		if n.parent == nil {
			return
		}
		wanted := n.key.Eligible > 0
		n.key.Priority = queues.Exposed(n.below.largest(), n.settings.Policies)
		n.parent.below.recount(&n.counted, n.key.Priority, wanted)
		n.parent.children.Update(n, wanted)
	}
}
