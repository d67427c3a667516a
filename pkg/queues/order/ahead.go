package order

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Sides says on which parts of its path an ask is below a guarantee, see QueueKey: bit i
// is the part of the path from the leaf to i levels above.
type Sides uint64

// Has reports whether the side that ends the given number of levels above the leaf is
// below a guarantee.
func (s Sides) Has(level int) bool { return s>>level&1 == 1 }

// Sides returns the sides of an ask of a leaf. own is the usage of its queues that is due
// to the ask.
func (x *Index) Sides(leaf queues.ID, request, own resources.Vector) Sides {
	var sides Sides
	var below, reached resources.Types
	bit := Sides(1)
	for n := x.nodes[leaf]; n.parent != nil; n = n.parent {
		b, r := n.settings.Guaranteed.Standing(n.stays.Sub(own), request, x.strict)
		below, reached = below|b, reached|r
		if below&^reached != 0 {
			sides |= bit
		}
		bit <<= 1
	}
	return sides
}

// Ahead yields groups of this order that criterion 2 puts before an ask of a leaf. The
// ask has the given sides and is not in this order. Ahead examines a limited number of
// groups, the first ones of each level.
func (x *Index) Ahead(leaf queues.ID, priority int32, sides Sides, yield func(*Group) bool) {
	if x.stale {
		x.reshare()
	}
	looks, exposed := mostAhead, int64(priority)
	for n, level := x.nodes[leaf], 0; n.parent != nil; n, level = n.parent, level+1 {
		byPriority := n.parent.settings.Policies.PrioritySort
		exposed = queues.Exposed(exposed, n.settings.Policies)
		if sides.Has(level) {
			continue
		}
		first, _ := n.parent.children.Leading(func(c *node) bool {
			return byPriority && c.key.Priority > exposed || c.key.BelowGuarantee && (!byPriority || c.key.Priority == exposed)
		}, mostSiblings)
		for _, c := range first {
			if c != n && c.key.BelowGuarantee && !x.yieldBelow(c, c, &looks, yield) {
				return
			}
		}
	}
}

// mostAhead is the number of groups that Ahead examines.
const mostAhead = 200

// yieldBelow yields the groups at or below n that have asks for which top is below its
// guarantee.
func (x *Index) yieldBelow(n, top *node, looks *int, yield func(*Group) bool) bool {
	for _, g := range n.groups.Items() {
		if *looks--; *looks < 0 {
			return false
		}
		if x.isBelow(g, top) && !yield(g) {
			return false
		}
	}
	for _, c := range n.children.Items() {
		if !x.yieldBelow(c, top, looks, yield) {
			return false
		}
	}
	return true
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
