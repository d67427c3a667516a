package order

import (
	"errors"
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Check verifies that the index matches its asks and settings: every heap is in order,
// every count and key equals the recomputed one, and every group is either in the order
// or blocked. It visits everything and is for tests and diagnosis.
func (x *Index) Check() error {
	for _, n := range x.nodes {
		if n == nil {
			continue
		}
		if err := x.checkNode(n); err != nil {
			return fmt.Errorf("order of %s: %w", n.settings.Path, err)
		}
	}
	return nil
}

func (x *Index) checkNode(n *node) error {
	if err := n.children.Check(); err != nil {
		return fmt.Errorf("children: %w", err)
	}
	if err := n.groups.Check(); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	eligible := 0
	var below priorities
	for _, c := range n.children.Items() {
		eligible += c.key.Eligible
		below.add(c.key.Priority)
	}
	for id, g := range n.known {
		if err := x.checkGroup(n, g); err != nil {
			return fmt.Errorf("group %v of %+v: %w", g.request, id.class, err)
		}
		if g.blockedAt == nil {
			eligible += g.asks
			below.add(g.below.largest())
		}
	}
	return x.checkKey(n, eligible, below.largest())
}

func (x *Index) checkKey(n *node, eligible int, priority int64) error {
	exposed := queues.Exposed(priority, n.settings.Policies)
	switch {
	case eligible != n.key.Eligible:
		return fmt.Errorf("%d asks counted, %d found", n.key.Eligible, eligible)
	case priority != n.below.largest():
		return fmt.Errorf("highest priority below is %d, found %d", n.below.largest(), priority)
	case n.parent != nil && eligible > 0 && n.key.Priority != exposed:
		return fmt.Errorf("exposes priority %d, should be %d", n.key.Priority, exposed)
	case !x.stale && n.key.Share.Compare(x.share(n)) != 0:
		return fmt.Errorf("share is %v, should be %v", n.key.Share, x.share(n))
	}
	if had, before := n.next, n.key; !x.stale && x.findNext(n) {
		now := n.next
		n.next, n.key = had, before
		return fmt.Errorf("next is %+v, should be %+v", had, now)
	}
	for g := range n.blocked {
		if g.blockedAt != n || g.leaf.known[g.id] != g {
			return fmt.Errorf("group %v of %s is listed as blocked and is not", g.request, g.leaf.settings.Path)
		}
	}
	return nil
}

func (x *Index) checkGroup(n *node, g *AskGroup) error {
	if err := g.batches.Check(); err != nil {
		return err
	}
	asks := 0
	var below priorities
	for _, b := range g.batches.Items() {
		if err := x.checkBatch(g, b); err != nil {
			return fmt.Errorf("application %s: %w", b.app.key.Name, err)
		}
		asks += b.asks.Len()
		below.add(b.key.Priority)
	}
	switch {
	case g.leaf != n:
		return fmt.Errorf("belongs to %s", g.leaf.settings.Path)
	case asks == 0:
		return errors.New("is empty")
	case asks != g.asks:
		return fmt.Errorf("%d asks counted, %d found", g.asks, asks)
	case below.largest() != g.below.largest():
		return fmt.Errorf("highest priority is %d, found %d", g.below.largest(), below.largest())
	case (g.blockedAt == nil) != (g.at >= 0):
		return fmt.Errorf("in the order: %v, blocked: %v", g.at >= 0, g.blockedAt != nil)
	}
	if g.blockedAt != nil {
		if _, listed := g.blockedAt.blocked[g]; !listed {
			return fmt.Errorf("is not listed as blocked by %s", g.blockedAt.settings.Path)
		}
	}
	return nil
}

func (x *Index) checkBatch(g *AskGroup, b *batch) error {
	if b.asks.Len() == 0 {
		return errors.New("has no asks here")
	}
	key := b.app.key
	key.Priority = int64(b.first().key.Priority)
	switch {
	case b.key != key:
		return fmt.Errorf("key is %+v, should be %+v", b.key, key)
	case b.group != g || b.app.batches[b.shape] != b || b.app.closed[b.shape] || b.app.leaf != g.leaf || b.app.class != g.id.class:
		return errors.New("is elsewhere too")
	case !x.stale && b.app.key.Share.Compare(x.appShare(b.app)) != 0:
		return fmt.Errorf("share is %v, should be %v", b.app.key.Share, x.appShare(b.app))
	}
	return b.asks.Check()
}
