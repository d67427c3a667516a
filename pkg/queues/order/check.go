package order

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Check verifies that the index is what its asks and settings make it: every
// heap in order, every count and key as recomputed, every group in the order
// or blocked and not both. It looks at everything and is for tests and
// diagnosis.
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
	if err := n.apps.Check(); err != nil {
		return fmt.Errorf("applications: %w", err)
	}
	eligible := 0
	var below priorities
	for _, c := range n.children.Items() {
		eligible += c.key.Eligible
		below.add(c.key.Priority)
	}
	for _, a := range n.apps.Items() {
		if err := checkApp(a); err != nil {
			return fmt.Errorf("application %s: %w", a.key.Name, err)
		}
		eligible += a.eligible
		below.add(a.key.Priority)
	}
	if eligible != n.key.Eligible {
		return fmt.Errorf("%d asks counted, %d found", n.key.Eligible, eligible)
	}
	if below.largest() != n.below.largest() {
		return fmt.Errorf("highest priority below is %d, found %d", n.below.largest(), below.largest())
	}
	if n.parent != nil && eligible > 0 && n.key.Priority != queues.Exposed(below.largest(), n.settings.Policies) {
		return fmt.Errorf("exposes priority %d, should be %d", n.key.Priority, queues.Exposed(below.largest(), n.settings.Policies))
	}
	if !x.stale && n.key.Share.Compare(x.share(n)) != 0 {
		return fmt.Errorf("share is %v, should be %v", n.key.Share, x.share(n))
	}
	for g := range n.blocked {
		if g.blockedAt != n || g.at >= 0 || len(g.asks.Items()) == 0 {
			return fmt.Errorf("group %v of %s is listed as blocked and is not", g.request, g.app.key.Name)
		}
	}
	return nil
}

func checkApp(a *App) error {
	if err := a.groups.Check(); err != nil {
		return err
	}
	eligible := 0
	for _, g := range a.groups.Items() {
		if err := g.asks.Check(); err != nil {
			return err
		}
		if g.blockedAt != nil {
			return fmt.Errorf("group %v is in the order and blocked", g.request)
		}
		eligible += len(g.asks.Items())
	}
	if eligible != a.eligible {
		return fmt.Errorf("%d asks counted, %d found", a.eligible, eligible)
	}
	return nil
}
