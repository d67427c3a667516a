package order

import (
	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// AskGroup is the asks of one leaf and class with the same request. It is not a PodGroup. It is
// either in the order or blocked by a queue.
type AskGroup struct {
	leaf      *node
	id        groupID
	request   resources.Vector
	asks      int
	batches   ranking.Heap[*batch]
	below     priorities // the highest priority of each batch
	at        int        // in leaf.groups; -1 if it is blocked or empty
	counted   place      // what leaf.below counts for the group
	blockedAt *node
	verdict   queues.Verdict
}

// groupID identifies a group in its leaf.
type groupID struct {
	class   Class
	request string
}

// Place returns the field for the index of the group in the ranking of the leaf.
func (g *AskGroup) Place() *int { return &g.at }

// Leaf returns the queue of the group.
func (g *AskGroup) Leaf() queues.ID { return g.leaf.id }

// Verdict returns why the group is blocked; granted if it is not.
func (g *AskGroup) Verdict() queues.Verdict {
	if g.blockedAt == nil {
		return queues.Granted
	}
	return g.verdict
}

// First returns the first ask of the group in the order. Groups are never empty.
func (g *AskGroup) First() *Ask { return g.batches.Items()[0].first() }

// Ask is a pending pod that is in the order, or would be if its group were not blocked
// and the ask not closed.
type Ask struct {
	key   AskKey
	batch *batch
	at    int // in batch.asks
}

// Place returns the field for the index of the ask in the ranking of the batch.
func (a *Ask) Place() *int { return &a.at }

// UID returns the pod's UID.
func (a *Ask) UID() string { return a.key.UID }

// Group returns the group of the ask; nil while the ask is closed.
func (a *Ask) Group() *AskGroup { return a.batch.group }

// Push adds an ask to its application. hash is that of its equivalence class; "" for none. The
// ask joins its group, blocked or not, unless it is closed (SetClosed).
func (x *Index) Push(a *App, key AskKey, request resources.Vector, hash string) *Ask {
	shape := shapeOf(request, hash)
	b := a.batches[shape]
	if b == nil {
		b = &batch{app: a, shape: shape, request: request, at: ranking.Outside}
		b.asks = ranking.New(func(p, q *Ask) bool { return CompareAsks(p.key, q.key) < 0 })
		a.batches[shape] = b
	}
	ask := &Ask{key: key, batch: b, at: ranking.Outside}
	b.asks.Update(ask, true)
	switch {
	case b.group != nil:
		x.regroup(b, 1)
	case !a.closed[shape]:
		x.enterGroup(b, 1)
	}
	return ask
}

// Remove removes an ask from its application.
func (x *Index) Remove(ask *Ask) {
	b := ask.batch
	b.asks.Update(ask, false)
	if b.asks.Len() == 0 {
		delete(b.app.batches, b.shape)
	}
	switch {
	case b.group == nil:
	case b.asks.Len() > 0:
		x.regroup(b, -1)
	default:
		x.leaveGroup(b, 1)
	}
}

// SetClosed removes the asks of one request and hash of an application from the order,
// including later ones, or returns them to it. It is independent of whether their group
// is blocked.
func (x *Index) SetClosed(a *App, request resources.Vector, hash string, closed bool) {
	shape := shapeOf(request, hash)
	if a.closed[shape] == closed {
		return
	}
	b := a.batches[shape]
	if closed {
		if a.closed == nil {
			a.closed = map[string]bool{}
		}
		a.closed[shape] = true
		if b != nil {
			x.leaveGroup(b, b.asks.Len())
			b.group = nil
		}
		return
	}
	delete(a.closed, shape)
	if b != nil {
		x.enterGroup(b, b.asks.Len())
	}
}

// shapeOf identifies a batch in its application.
func shapeOf(request resources.Vector, hash string) string {
	if hash == "" {
		return request.Key()
	}
	return request.Key() + "\x00" + hash
}

// Block removes a group from the order because of a verdict that refuses it. If the group
// is already blocked, it gets the new verdict.
func (x *Index) Block(g *AskGroup, v queues.Verdict) {
	in := g.blockedAt == nil
	if !in {
		delete(g.blockedAt.blocked, g)
	}
	g.blockedAt, g.verdict = x.nodes[v.At], v
	g.blockedAt.blocked[g] = struct{}{}
	if in {
		x.rank(g, -g.asks)
	}
}

// Unblock returns a blocked group to the order.
func (x *Index) Unblock(g *AskGroup) {
	if g.blockedAt == nil {
		return
	}
	delete(g.blockedAt.blocked, g)
	g.blockedAt, g.verdict = nil, queues.Granted
	x.rank(g, g.asks)
}

// enterGroup adds a batch of n asks that is in no group to its group.
func (x *Index) enterGroup(b *batch, n int) {
	a := b.app
	id := groupID{a.class, b.request.Key()}
	g := a.leaf.known[id]
	if g == nil {
		g = &AskGroup{leaf: a.leaf, id: id, request: b.request, at: ranking.Outside}
		g.batches = ranking.New(func(b, c *batch) bool { return compareBatches(b, c) < 0 })
		a.leaf.known[id] = g
	}
	b.group = g
	x.regroup(b, n)
	x.SetAppUsed(a, a.used) // the share is not updated while none of its batches is in a group
}

// regroup moves a batch to its place in its group, and the group in its leaf, after its
// first ask or its application's key may have changed and it gained delta asks.
func (x *Index) regroup(b *batch, delta int) {
	g := b.group
	b.rekey()
	g.below.recount(&b.counted, b.key.Priority, true)
	g.batches.Update(b, true)
	x.grow(g, delta)
}

// leaveGroup removes a batch, which had n asks, from its group.
func (x *Index) leaveGroup(b *batch, n int) {
	g := b.group
	g.below.recount(&b.counted, 0, false)
	g.batches.Update(b, false)
	x.grow(g, -n)
	if g.asks > 0 {
		return
	}
	delete(g.leaf.known, g.id)
	if g.blockedAt != nil {
		delete(g.blockedAt.blocked, g)
	}
}

// grow counts delta more asks of a group.
func (x *Index) grow(g *AskGroup, delta int) {
	g.asks += delta
	if g.blockedAt == nil {
		x.rank(g, delta)
	}
}

// rank moves a group to its place in its leaf after it gained delta asks that may run.
func (x *Index) rank(g *AskGroup, delta int) {
	leaf := g.leaf
	wanted := g.blockedAt == nil && g.asks > 0
	leaf.below.recount(&g.counted, g.below.largest(), wanted)
	leaf.groups.Update(g, wanted)
	x.propagate(leaf, delta)
}
