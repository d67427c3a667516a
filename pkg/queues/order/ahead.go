package order

import (
	"iter"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Path has the queues of an ask from its leaf to the one below root, with what criterion 2
// compares at each of them. Every index with these queues may use it.
type Path []step

type step struct {
	queue, parent queues.ID
	priority      int64 // of the ask, as the siblings of the queue see it
	below         bool  // the ask is below a guarantee on the part of the path up to the queue
}

// IsBelow reports whether the ask is below a guarantee on every part of its path: criterion 2
// puts nothing before it.
func (p Path) IsBelow() bool {
	return !slices.ContainsFunc(p, func(s step) bool { return !s.below })
}

// AskInfo is what IsAhead needs of an ask, which may be in the order or not.
type AskInfo struct {
	Leaf     queues.ID
	Priority int32
	Request  resources.Vector
	Own      resources.Vector                 // the usage of its queues that is due to the ask
	Later    func(queues.ID) resources.Vector // that is due to asks after it; nil for none
}

// PathOf returns the path of an ask.
func (x *Index) PathOf(o *AskInfo) Path {
	var p Path
	priority := int64(o.Priority)
	for n, below := range x.below(o) {
		if n.parent != nil {
			priority = queues.Exposed(priority, n.settings.Policies)
			p = append(p, step{n.id, n.parent.id, priority, below})
		}
	}
	return p
}

// below yields the queues from the leaf of an ask to the root, each with whether the ask is
// below a guarantee on the path up to that queue.
func (x *Index) below(o *AskInfo) iter.Seq2[*node, bool] {
	return func(yield func(*node, bool) bool) {
		var below, reached resources.Types
		for n := x.nodes[o.Leaf]; n != nil; n = n.parent {
			var later resources.Vector
			if o.Later != nil {
				later = o.Later(n.id)
			}
			b, r := n.settings.Guaranteed.Standing(n.stays, o.Request, x.strict, o.Own, later)
			below, reached = below|b, reached|r
			if !yield(n, below&^reached != 0) {
				return
			}
		}
	}
}

// isBelow reports whether an ask is below a guarantee on the path up to top.
func (x *Index) isBelow(o *AskInfo, top *node) bool {
	for n, below := range x.below(o) {
		if n == top {
			return below
		}
	}
	return false
}

// IsAhead tells whether criterion 2 puts w before the ask with path p. It compares two
// siblings: the queues of both right below the lowest queue that both paths have in common.
func (x *Index) IsAhead(w *AskInfo, p Path) bool {
	priority := int64(w.Priority)
	for n := x.nodes[w.Leaf]; n.parent != nil; n = n.parent {
		priority = queues.Exposed(priority, n.settings.Policies)
		if s, found := p.sibling(n); found {
			byPriority := n.parent.settings.Policies.PrioritySort
			return s.comparesWith(n) && (priority >= s.priority || !byPriority) && x.isBelow(w, n)
		}
	}
	return false
}

// sibling returns the step of the path below the parent of a queue, if there is one.
func (p Path) sibling(n *node) (s step, found bool) {
	i := slices.IndexFunc(p, func(s step) bool { return s.parent == n.parent.id })
	if i < 0 {
		return step{}, false
	}
	return p[i], true
}

// comparesWith tells whether an ask of a sibling may be first: the ask of the step is not below a
// guarantee, and the queue is not on its path, where one queue contains the other.
func (s step) comparesWith(n *node) bool { return s.queue != n.id && !s.below }

// branch is how an ask stands to the guarantees of the queues from one of them up to the top: the queue
// that IsAhead compares with the path of another ask. It is empty where IsAhead is always false.
type branch struct {
	look           uint64 // the call of MayBeAhead that found it
	top            *node
	below, reached resources.Types // of which a queue is below its guarantee, or has reached it
}

// MayBeAhead returns the leaves in which an ask that requests at least this may be before the ask with path
// p, by IsAhead without the priorities, and the other leaves below the same tops. due is what is due
// to the ask and to those after it, at most. It looks at each queue once.
func (x *Index) MayBeAhead(leaves iter.Seq[queues.ID], request resources.Vector, due func(queues.ID) resources.Vector, p Path) map[queues.ID]bool {
	x.looks++
	tops := map[*node]bool{}
	for leaf := range leaves {
		if b := x.branchOf(x.nodes[leaf], request, due, p); b.below&^b.reached != 0 {
			tops[b.top] = true
		}
	}
	if len(tops) == 0 {
		return nil
	}
	out := map[queues.ID]bool{}
	for leaf := range leaves {
		if tops[x.nodes[leaf].branch.top] {
			out[leaf] = true
		}
	}
	return out
}

// branchOf returns the branch of a queue for a call of MayBeAhead.
func (x *Index) branchOf(n *node, request resources.Vector, due func(queues.ID) resources.Vector, p Path) branch {
	if n.branch.look == x.looks || n.parent == nil {
		return n.branch
	}
	b := branch{look: x.looks}
	if s, found := p.sibling(n); !found {
		b = x.branchOf(n.parent, request, due, p)
	} else if s.comparesWith(n) {
		b.top = n
	}
	if b.top != nil {
		below, reached := n.settings.Guaranteed.Standing(n.stays, request, x.strict, due(n.id))
		b.below, b.reached = b.below|below, b.reached|reached
	}
	n.branch = b
	return b
}

// Ahead yields asks of this order that fit into some room and are below a guarantee, and
// that criterion 2 may put before the ask with path p; see IsAhead. It examines a
// limited number of groups and asks, the first groups of each level. Then it yields as many
// asks of groups that the max of a queue above the leaf of p blocks, the group with the
// first ask first.
func (x *Index) Ahead(p Path, room resources.Vector) iter.Seq[*Ask] {
	return func(yield func(*Ask) bool) {
		x.reshare()
		l := lookout{Index: x, room: room, left: mostAhead, yield: yield}
		l.yieldInOrder(p)
		if !l.stopped {
			l.left = mostAhead
			l.yieldBlocked(p)
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
func (l *lookout) yieldInOrder(p Path) {
	for _, s := range p {
		if s.below {
			continue
		}
		above := l.nodes[s.parent]
		first, _ := above.children.Leading(func(c *node) bool {
			return !above.settings.Policies.PrioritySort || c.key.Priority >= s.priority
		}, mostSiblings)
		for _, c := range first {
			if c.id != s.queue && !l.yieldBelow(c, c) { // its next ask may be above its guarantee, and hide one that is not
				return
			}
		}
	}
}

// yieldBlocked yields asks of groups that the max of a queue above the leaf of p blocks.
// Groups that this leaf blocks are its own, and criterion 2 does not put them before p.
func (l *lookout) yieldBlocked(p Path) {
	for _, s := range p {
		for _, g := range l.blockedAt(l.nodes[s.parent], p) {
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
		if l.room.Covers(g.request) && l.isBelow(&AskInfo{Leaf: g.leaf.id, Request: g.request}, top) && !l.yieldAll(g) {
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
func (l *lookout) blockedAt(n *node, p Path) []*AskGroup {
	var out []*AskGroup
	for g := range n.blocked {
		if g.verdict.Reason.Code != reasons.OverMax || !l.room.Covers(g.request) {
			continue
		}
		w := AskInfo{Leaf: g.leaf.id, Priority: int32(g.below.largest()), Request: g.request}
		if l.IsAhead(&w, p) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(g, h *AskGroup) int { return CompareAsks(g.First().key, h.First().key) })
	return out
}
