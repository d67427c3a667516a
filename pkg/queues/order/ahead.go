package order

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Sides says on which parts of its path an ask is below a guarantee, see QueueKey: bit i
// is the part of the path from the leaf to i levels above.
type Sides uint64

// EverySide is the sides of an ask that is below a guarantee on every part of its path:
// criterion 2 puts nothing before it.
const EverySide = ^Sides(0)

// Has reports whether the side that ends the given number of levels above the leaf is
// below a guarantee.
func (s Sides) Has(level int) bool { return s>>level&1 == 1 }

// Outside is an ask that is in none of the orders.
type Outside struct {
	Leaf     queues.ID
	Priority int32
	Request  resources.Vector
	Own      resources.Vector // the usage of its queues that is due to the ask
}

// Sides returns the sides of an ask.
func (x *Index) Sides(o *Outside) Sides {
	var sides Sides
	var below, reached resources.Types
	bit := Sides(1)
	for n := x.nodes[o.Leaf]; n.parent != nil; n = n.parent {
		b, r := n.settings.Guaranteed.Standing(n.stays.Sub(o.Own), o.Request, x.strict)
		below, reached = below|b, reached|r
		if below&^reached != 0 {
			sides |= bit
		}
		bit <<= 1
	}
	if sides == bit-1 {
		return EverySide
	}
	return sides
}

// IsAhead tells whether criterion 2 puts w before p, which has the given sides.
func (x *Index) IsAhead(w, p *Outside, sides Sides) bool {
	of, level := int64(w.Priority), 0
	for n := x.nodes[w.Leaf]; n.parent != nil; n, level = n.parent, level+1 {
		of = queues.Exposed(of, n.settings.Policies)
		exposed, at := int64(p.Priority), 0
		for m := x.nodes[p.Leaf]; m.parent != nil; m, at = m.parent, at+1 {
			exposed = queues.Exposed(exposed, m.settings.Policies)
			switch {
			case m == n:
				return false // one queue contains the other
			case m.parent == n.parent:
				return (of >= exposed || !n.parent.settings.Policies.PrioritySort) && !sides.Has(at) && x.Sides(w).Has(level)
			}
		}
	}
	return false
}

// Ahead yields asks of this order that fit into some room and are below a guarantee, and
// that criterion 2 may put before p, which has the given sides; see IsAhead. It examines a
// limited number of groups and asks, the first groups of each level. Then it yields as many
// asks, by their order, of groups that a max refuses which p counts against, too.
func (x *Index) Ahead(p *Outside, sides Sides, room resources.Vector, yield func(*Ask) bool) {
	if len(x.nodes) == 0 {
		return
	}
	if x.stale {
		x.reshare()
	}
	l := lookout{Index: x, room: room, looks: mostAhead, yield: yield}
	l.yieldInOrder(p, sides)
	l.looks = mostAhead
	l.yieldBlocked(p, sides)
}

// mostAhead is the number of groups and asks that Ahead examines.
const mostAhead = 200

// lookout is a call of Ahead.
type lookout struct {
	*Index
	room  resources.Vector
	looks int // that are left
	yield func(*Ask) bool
	over  bool // yield said so
}

// yieldInOrder yields asks of groups that are in the order.
func (l *lookout) yieldInOrder(p *Outside, sides Sides) {
	exposed := int64(p.Priority)
	for n, level := l.nodes[p.Leaf], 0; n.parent != nil; n, level = n.parent, level+1 {
		byPriority := n.parent.settings.Policies.PrioritySort
		exposed = queues.Exposed(exposed, n.settings.Policies)
		if sides.Has(level) {
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

// yieldBlocked yields asks of groups that a max refuses which p counts against. What the leaf
// of p refuses is of that leaf, too, and criterion 2 does not put it before p.
func (l *lookout) yieldBlocked(p *Outside, sides Sides) {
	for n := l.nodes[p.Leaf].parent; n != nil && !l.over; n = n.parent {
		for _, g := range l.blockedAt(n, p, sides) {
			if !l.yieldAll(g) {
				return
			}
		}
	}
}

// yieldBelow yields the asks at or below n for which top is below its guarantee.
func (l *lookout) yieldBelow(n, top *node) bool {
	for _, g := range n.groups.Items() {
		if l.looks--; l.looks < 0 || l.room.Covers(g.request) && l.isBelow(g, top) && !l.yieldAll(g) {
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

func (l *lookout) yieldAll(g *Group) bool {
	for _, b := range g.batches.Items() {
		for _, a := range b.asks.Items() {
			if l.looks--; l.looks < 0 {
				return false
			}
			if l.over = !l.yield(a); l.over {
				return false
			}
		}
	}
	return true
}

// blockedAt returns all groups that the max of a queue refuses and that may be before p, by
// their first asks.
func (l *lookout) blockedAt(n *node, p *Outside, sides Sides) []*Group {
	var out []*Group
	for g := range n.blocked {
		if g.verdict.Reason.Code != reasons.OverMax || !l.room.Covers(g.request) {
			continue
		}
		w := Outside{Leaf: g.leaf.id, Priority: int32(g.below.largest()), Request: g.request}
		if l.IsAhead(&w, p, sides) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(g, h *Group) int { return CompareAsks(g.First().key, h.First().key) })
	return out
}

// isBelow reports whether the asks of a group are below a guarantee on the path up to
// top.
func (x *Index) isBelow(g *Group, top *node) bool {
	var below, reached resources.Types
	for n := g.leaf; ; n = n.parent {
		b, r := n.settings.Guaranteed.Standing(n.stays, g.request, x.strict)
		below, reached = below|b, reached|r
		if n == top {
			return below&^reached != 0
		}
	}
}
