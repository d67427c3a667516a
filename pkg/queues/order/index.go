package order

import (
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Index keeps the eligible asks of all queues in hierarchical order. Its owner passes it
// changes of queues, of their usage, and of asks.
type Index struct {
	nodes    []*node // by queues.ID; nil if there is none
	capacity resources.Limit
	// strict is true if an ask must not raise its queue above the guarantee.
	strict bool
	// stale is true after the capacity or strict changed: every key may be different.
	stale  bool
	visits int
	looks  uint64 // calls of MayBeAhead
}

// Visits counts the computed shares and next asks of queues. Tests show with it that the
// work of a change does not grow with the number of queues.
func (x *Index) Visits() int { return x.visits }

// node is a queue in the order.
type node struct {
	id       queues.ID
	settings *queues.Settings
	parent   *node
	used     resources.Vector
	stays    resources.Vector // the part of used that is not leaving

	key      queueKey
	next     next
	at       int // in parent.children; -1 without an eligible ask
	children ranking.Heap[*node]
	groups   ranking.Heap[*AskGroup]
	below    priorities // of the groups and children in the order
	counted  place      // what the parent's below counts for this node
	branch   branch

	known   map[groupID]*AskGroup  // all groups of this queue
	blocked map[*AskGroup]struct{} // the groups that this queue blocks, of any leaf below
}

// Place returns the field for the index of the node in the ranking of the parent.
func (n *node) Place() *int { return &n.at }

// NewIndex returns an index without queues.
func NewIndex() *Index { return &Index{} }

// Has reports whether the index has the queue with exactly these settings.
func (x *Index) Has(id queues.ID, s *queues.Settings) bool {
	return int(id) < len(x.nodes) && x.nodes[id] != nil && x.nodes[id].settings == s
}

// SetQueue adds a queue or changes its settings. The parent must be added first.
func (x *Index) SetQueue(id queues.ID, s *queues.Settings) {
	for int(id) >= len(x.nodes) {
		x.nodes = append(x.nodes, nil)
	}
	n := x.nodes[id]
	if n == nil {
		n = &node{id: id, at: ranking.Outside, known: map[groupID]*AskGroup{}, blocked: map[*AskGroup]struct{}{}}
		n.children = ranking.New(func(a, b *node) bool {
			return compareQueues(a.key, b.key, n.settings.Policies.PrioritySort) < 0
		})
		n.groups = ranking.New(func(g, h *AskGroup) bool {
			return compareBatches(g.batches.Items()[0], h.batches.Items()[0]) < 0
		})
		if s.Parent != queues.NoQueue {
			n.parent = x.nodes[s.Parent]
		}
		x.nodes[id] = n
	}
	n.settings = s
	n.key.Path = s.Path
	x.reorder(n)
	n.children.Restore()
	x.propagate(n, 0)
}

// RemoveQueue removes a queue that has no application and no child.
func (x *Index) RemoveQueue(id queues.ID) { x.nodes[id] = nil }

// SetUsed sets what a queue uses and is about to use, and the part of it that is not
// leaving. The share is computed from the former, and whether the queue is below its
// guarantee from the latter. It does not change the usage of ancestors, which is set by
// calls of their own.
func (x *Index) SetUsed(id queues.ID, used, stays resources.Vector) {
	n := x.nodes[id]
	n.used, n.stays = used, stays
	n.key.Share = x.share(n)
	x.findNext(n)
	for n.at >= 0 {
		n.parent.children.Update(n, true)
		if n = n.parent; !x.findNext(n) {
			return // nor does its own place change
		}
	}
}

// SetStrict sets whether an ask must not raise its queue above the guarantee.
func (x *Index) SetStrict(strict bool) {
	x.stale = x.stale || strict != x.strict
	x.strict = strict
}

// SetCapacity sets the sum of the nodes' allocatable, which replaces the guarantee of a
// queue that has none.
func (x *Index) SetCapacity(capacity resources.Vector) {
	x.capacity = resources.LimitFrom(capacity.Map())
	x.stale = true
}

// Next returns the first ask in the order, or false if there is none. It does not remove
// the ask.
func (x *Index) Next() (*Ask, bool) {
	if len(x.nodes) == 0 {
		return nil, false
	}
	x.reshare()
	if group := x.nodes[queues.RootID].next.group; group != nil {
		return group.First(), true
	}
	return nil, false
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

// BlockedAt returns the groups that are blocked by the queue, in no particular order.
func (x *Index) BlockedAt(id queues.ID) []*AskGroup {
	return slices.Collect(maps.Keys(x.nodes[id].blocked))
}

// HasBlocked reports whether the queue blocks any group.
func (x *Index) HasBlocked(id queues.ID) bool { return len(x.nodes[id].blocked) > 0 }

// reshare recomputes all keys if they are stale.
func (x *Index) reshare() {
	if !x.stale {
		return
	}
	x.stale = false
	for _, n := range x.nodes {
		if n != nil {
			x.reorder(n)
		}
	}
	x.restore(x.nodes[queues.RootID])
}

// restore sorts the children of a queue, after those of its children, because the place
// of a child depends on the next ask below it.
func (x *Index) restore(n *node) {
	for _, c := range n.children.Items() {
		x.restore(c)
	}
	n.children.Restore()
	x.findNext(n)
}

// reorder recomputes the shares of a queue and its applications, and sorts the
// applications.
func (x *Index) reorder(n *node) {
	n.key.Share = x.share(n)
	for _, g := range n.known {
		for _, b := range g.batches.Items() {
			b.app.key.Share = x.appShare(b.app)
			b.rekey()
		}
	}
	for _, g := range n.known {
		g.batches.Restore()
	}
	n.groups.Restore()
}

func (x *Index) share(n *node) resources.Share {
	x.visits++
	return resources.DominantShare(n.used, n.settings.Guaranteed, n.settings.PathMax, x.capacity)
}

func (x *Index) appShare(a *App) resources.Share {
	s := a.leaf.settings
	return resources.DominantShare(a.used, s.Guaranteed, s.PathMax, x.capacity)
}

// propagate updates the key of a node, below which delta asks became eligible, and moves
// the node, then its ancestors, to their places.
func (x *Index) propagate(n *node, delta int) {
	for ; n != nil; n = n.parent {
		n.key.Eligible += delta
		x.findNext(n)
		if n.parent == nil {
			return
		}
		wanted := n.key.Eligible > 0
		n.key.Priority = queues.Exposed(n.below.largest(), n.settings.Policies)
		n.parent.below.recount(&n.counted, n.key.Priority, wanted)
		n.parent.children.Update(n, wanted)
	}
}
