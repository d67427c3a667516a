package order

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Standing is what is before an ask in the current order. The order depends on usage, so
// it changes soon: each admitted pod moves its queue back.
type Standing struct {
	// In is false for an ask that is not in the order, because a quota blocks its group
	// or it is closed. All other fields are then empty.
	In bool
	// Levels are the queues from below root to the leaf, each with its place among the
	// children of its parent that have asks in the order.
	Levels []Place
	// Apps is the number of applications of the leaf with asks before the ask. Asks is
	// the number of these asks, including those of its own application. With More both
	// are lower bounds.
	Apps, Asks int
	More       bool
	// First are the UIDs of the first of these asks, in order; none with More.
	First []string
	// InLeaf counts the asks of the leaf that are in the order, InAll those of the
	// cluster.
	InLeaf, InAll int
}

// Place is the place of a queue among its siblings.
type Place struct {
	Queue queues.ID
	// Before are the siblings that are before it, in order; with More there are others.
	Before []queues.ID
	More   bool
	// Of counts the siblings with asks in the order, including this queue.
	Of int
}

// Limits of what a Standing examines, so that it costs at most some tens of microseconds.
const (
	mostSiblings = 20
	mostBatches  = 50
	mostAsks     = 300
	mostFirst    = 5
)

// Standing returns what is before an ask.
func (x *Index) Standing(a *Ask) Standing {
	g := a.batch.group
	if g == nil || g.blockedAt != nil {
		return Standing{}
	}
	x.reshare()
	s := Standing{In: true, InLeaf: g.leaf.key.Eligible, InAll: x.Eligible()}
	for n := g.leaf; n.parent != nil; n = n.parent {
		s.Levels = append(s.Levels, n.place())
	}
	slices.Reverse(s.Levels)
	s.rank(a)
	return s
}

func (n *node) place() Place {
	children := &n.parent.children
	before, all := children.Leading(func(c *node) bool {
		return compareQueues(c.key, n.key, n.parent.settings.Policies.PrioritySort) < 0
	}, mostSiblings)
	p := Place{Queue: n.id, More: !all, Of: children.Len()}
	for _, c := range before {
		p.Before = append(p.Before, c.id)
	}
	return p
}

// rank finds the asks of the leaf that are before one, batch by batch: the asks of a
// batch are in order, and so are the batches by their first asks.
func (s *Standing) rank(a *Ask) {
	leaf := a.batch.group.leaf
	groups, all := leaf.groups.Leading(func(g *AskGroup) bool { return before(g.First(), a) }, mostBatches)
	s.More = !all
	var found []*Ask
	apps := map[*App]bool{}
	for _, g := range groups {
		batches, all := g.batches.Leading(func(b *batch) bool { return before(b.first(), a) }, mostBatches)
		s.More = s.More || !all
		for _, b := range batches {
			asks, all := b.asks.Leading(func(c *Ask) bool { return before(c, a) }, mostAsks-len(found))
			s.More = s.More || !all
			apps[b.app] = true
			found = append(found, asks...)
		}
	}
	s.Apps, s.Asks = len(apps), len(found)
	if s.More {
		return
	}
	slices.SortFunc(found, compareInLeaf)
	for _, c := range found[:min(len(found), mostFirst)] {
		s.First = append(s.First, c.UID())
	}
}

func before(c, a *Ask) bool { return compareInLeaf(c, a) < 0 }

// compareInLeaf orders the asks of a leaf under the assumption that only these asks are
// removed from the order.
func compareInLeaf(c, a *Ask) int {
	p := &a.batch.app.leaf.settings.Policies
	one, other := c.batch.app.key, a.batch.app.key
	one.Priority, other.Priority = int64(c.key.Priority), int64(a.key.Priority)
	return cmp.Or(compareApps(one, other, p.ApplicationSort, p.PrioritySort), CompareAsks(c.key, a.key))
}
