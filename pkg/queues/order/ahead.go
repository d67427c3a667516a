package order

import (
	"iter"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Levels are the levels of an ask's path up to which it is below a guarantee, see
// queueKey: bit i is the part of the path from the leaf to the queue i levels above it. A
// part of more than 64 levels counts as not below a guarantee.
type Levels uint64

// AllLevels are the levels of an ask that is below a guarantee on every part of its path:
// criterion 2 puts nothing before it.
const AllLevels = ^Levels(0)

// Has reports whether the part of the path that ends the given number of levels above the
// leaf is below a guarantee.
func (s Levels) Has(level int) bool { return s>>level&1 == 1 }

// AskInfo is what IsAhead needs of an ask, which may be in the order or not.
type AskInfo struct {
	Leaf     queues.ID
	Priority int32
	Request  resources.Vector
	Own      resources.Vector               // the usage of its queues that is due to the ask
	Later    map[queues.ID]resources.Vector // that is due to asks after it
}

// Levels returns the levels of an ask.
func (x *Index) Levels(o *AskInfo) Levels {
	var levels Levels
	var below, reached resources.Types
	bit := Levels(1)
	for n := x.nodes[o.Leaf]; n.parent != nil; n = n.parent {
		b, r := n.settings.Guaranteed.Standing(n.stays.Sub(o.Own).Sub(o.Later[n.id]), o.Request, x.strict)
		below, reached = below|b, reached|r
		if below&^reached != 0 {
			levels |= bit
		}
		bit <<= 1
	}
	if levels == bit-1 {
		return AllLevels
	}
	return levels
}

// IsAhead tells whether criterion 2 puts w before p, which has the given levels. It
// compares two siblings: the queue of w and the queue of p right below the lowest queue
// that both paths have in common.
func (x *Index) IsAhead(w, p *AskInfo, levels Levels) bool {
	wPriority, wLevel := int64(w.Priority), 0
	for wQueue := x.nodes[w.Leaf]; wQueue.parent != nil; wQueue, wLevel = wQueue.parent, wLevel+1 {
		wPriority = queues.Exposed(wPriority, wQueue.settings.Policies)
		pPriority, pLevel := int64(p.Priority), 0
		for pQueue := x.nodes[p.Leaf]; pQueue.parent != nil; pQueue, pLevel = pQueue.parent, pLevel+1 {
			pPriority = queues.Exposed(pPriority, pQueue.settings.Policies)
			switch {
			case pQueue == wQueue:
				return false // one queue contains the other
			case pQueue.parent == wQueue.parent:
				byPriority := pQueue.parent.settings.Policies.PrioritySort
				return (wPriority >= pPriority || !byPriority) && !levels.Has(pLevel) && x.Levels(w).Has(wLevel)
			}
		}
	}
	return false
}

// Ahead yields asks of this order that fit into some room and are below a guarantee, and
// that criterion 2 may put before p, which has the given levels; see IsAhead. It examines a
// limited number of groups and asks, the first groups of each level. Then it yields as many
// asks of groups that the max of a queue above the leaf of p blocks, the group with the
// first ask first.
func (x *Index) Ahead(p *AskInfo, levels Levels, room resources.Vector) iter.Seq[*Ask] {
	return func(yield func(*Ask) bool) {
		x.reshare()
		l := lookout{Index: x, room: room, left: mostAhead, yield: yield}
		l.yieldInOrder(p, levels)
		if !l.stopped {
			l.left = mostAhead
			l.yieldBlocked(p, levels)
		}
	}
}

// mostAhead is the number of groups and asks that Ahead examines.
const mostAhead = 200

// lookout is a call of Ahead.
type lookout struct {
	*Index
	room    resources.Vector
	left    int // how many more groups and asks are examined
	yield   func(*Ask) bool
	stopped bool // yield returned false
}

// yieldInOrder yields asks of groups that are in the order.
func (l *lookout) yieldInOrder(p *AskInfo, levels Levels) {
	exposed := int64(p.Priority)
	for n, level := l.nodes[p.Leaf], 0; n.parent != nil; n, level = n.parent, level+1 {
		byPriority := n.parent.settings.Policies.PrioritySort
		exposed = queues.Exposed(exposed, n.settings.Policies)
		if levels.Has(level) {
			continue
		}
		first, _ := n.parent.children.Leading(func(c *node) bool {
			return !byPriority || c.key.Priority >= exposed
		}, mostSiblings)
		for _, c := range first {
			if c != n && !l.yieldBelow(c, c) { // its next ask may be above its guarantee, and hide one that is not
				return
			}
		}
	}
}

// yieldBlocked yields asks of groups that the max of a queue above the leaf of p blocks.
// Groups that this leaf blocks are its own, and criterion 2 does not put them before p.
func (l *lookout) yieldBlocked(p *AskInfo, levels Levels) {
	for n := l.nodes[p.Leaf].parent; n != nil; n = n.parent {
		for _, g := range l.blockedAt(n, p, levels) {
			if !l.yieldAll(g) {
				return
			}
		}
	}
}

// yieldBelow yields the asks at or below n that are below a guarantee on the path up to
// top. It returns false if the iteration has ended.
func (l *lookout) yieldBelow(n, top *node) bool {
	for _, g := range n.groups.Items() {
		if l.left--; l.left < 0 {
			return false
		}
		if l.room.Covers(g.request) && l.isBelow(g, top) && !l.yieldAll(g) {
			return false
		}
	}
	for _, c := range n.children.Items() {
		if !l.yieldBelow(c, top) {
			return false
		}
	}
	return true
}

// yieldAll yields the asks of a group. It returns false if the iteration has ended.
func (l *lookout) yieldAll(g *AskGroup) bool {
	for _, b := range g.batches.Items() {
		for _, a := range b.asks.Items() {
			if l.left--; l.left < 0 {
				return false
			}
			if l.stopped = !l.yield(a); l.stopped {
				return false
			}
		}
	}
	return true
}

// blockedAt returns all groups that the max of a queue refuses and that may be before p, by
// their first asks.
func (l *lookout) blockedAt(n *node, p *AskInfo, levels Levels) []*AskGroup {
	var out []*AskGroup
	for g := range n.blocked {
		if g.verdict.Reason.Code != reasons.OverMax || !l.room.Covers(g.request) {
			continue
		}
		w := AskInfo{Leaf: g.leaf.id, Priority: int32(g.below.largest()), Request: g.request}
		if l.IsAhead(&w, p, levels) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(g, h *AskGroup) int { return CompareAsks(g.First().key, h.First().key) })
	return out
}

// isBelow reports whether the asks of a group are below a guarantee on the path up to
// top.
func (x *Index) isBelow(g *AskGroup, top *node) bool {
	var below, reached resources.Types
	for n := g.leaf; ; n = n.parent {
		b, r := n.settings.Guaranteed.Standing(n.stays, g.request, x.strict)
		below, reached = below|b, reached|r
		if n == top {
			return below&^reached != 0
		}
	}
}
