package daemonset

import (
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Bound tells whether the guarantees of queues bind DaemonSets of a namespace: whether laws
// 2, 5 and 7, and policy disabled, apply to its pods.
func (p *Params) Bound(namespace string) bool {
	return len(p.Namespaces) > 0 && !slices.Contains(p.Namespaces, namespace)
}

// classOrder is the order of classes for an asker. One that guarantees bind takes opted-out
// pods last (law 1).
func (p *Params) classOrder(ask *Ask) ClassOrder {
	if p.Bound(ask.Namespace) {
		return Seed
	}
	return p.ClassOrder
}

// guarantees say which pods may be preempted together for an asker that guarantees bind. If
// pods may not go together, then neither may they with others, so a set may be built pod by
// pod, in any order.
type guarantees struct {
	node      *Node
	ask       *Ask
	contested []bool // by type
	askPath   []*queues.Queue
	taken     map[queues.ID]planner.Amounts
}

// newGuarantees returns nil if guarantees do not bind the asker. The contested types are
// those that are short; if none is, all that the asker requests.
func newGuarantees(n *Node, ask *Ask, p *Params, b *balance) *guarantees {
	if !p.Bound(ask.Namespace) {
		return nil
	}
	g := &guarantees{
		node:      n,
		ask:       ask,
		contested: make([]bool, len(n.Types)),
		askPath:   pathOf(n.Queues, ask.Leaf),
		taken:     map[queues.ID]planner.Amounts{},
	}
	for t := range n.Types {
		g.contested[t] = b.need[t] > 0
	}
	if !slices.Contains(g.contested, true) {
		for t := range n.Types {
			g.contested[t] = ask.Request.At(t) > 0
		}
	}
	return g
}

// pathOf returns a queue and those above it; the root only for no queue.
func pathOf(view queues.View, leaf queues.ID) []*queues.Queue {
	return slices.Collect(queues.Ancestors(view, max(leaf, queues.RootID)))
}

// add adds a pod to those that go, or returns the law that forbids it. A pod of no queue
// is protected by no guarantee.
func (g *guarantees) add(p *planner.Pod) (planner.Rule, error) {
	if g == nil || p.Leaf == queues.NoQueue {
		return "", nil
	}
	path := pathOf(g.node.Queues, p.Leaf)
	side := 0 // the queues of path before this index are not above the asker's
	for side < len(path) && !slices.Contains(g.askPath, path[side]) {
		side++
	}
	if side == len(path) {
		return planner.RuleNoQueue, fmt.Errorf("%s: queue %d", planner.RuleNoQueue, p.Leaf)
	}
	if rule, err := g.fenced(path, side); err != nil {
		return rule, err
	}
	for _, q := range path[:side] {
		if !g.isOver(q, p) {
			return planner.Law5, fmt.Errorf("law 5: queue %s is not over its guarantee in what is contested", q.Path)
		}
	}
	for i, q := range path {
		if err := g.spares(q, p, i >= side); err != nil {
			return planner.Law2, err
		}
	}
	for _, q := range path {
		sum := g.taken[q.ID]
		if sum == nil {
			sum = make(planner.Amounts, len(g.node.Types))
			g.taken[q.ID] = sum
		}
		sum.Add(p.Request, 1)
	}
	return "", nil
}

// fenced judges law 7 and policy disabled.
func (g *guarantees) fenced(path []*queues.Queue, side int) (planner.Rule, error) {
	for _, q := range g.askPath {
		if q.IsFence() && !slices.Contains(path, q) {
			return planner.Law7, fmt.Errorf("law 7: it is outside the fence at %s", q.Path)
		}
	}
	if side > 0 && queues.PreemptionDisabled(g.node.Queues, path[0]) {
		return planner.RuleDisabled, fmt.Errorf("preemption is disabled in queue %s", path[0].Path)
	}
	return "", nil
}

// isOver reports whether a queue is over its guarantee in a contested type that the pod
// uses (law 5).
func (g *guarantees) isOver(q *queues.Queue, p *planner.Pod) bool {
	for t, name := range g.node.Types {
		guaranteed, _ := q.Guaranteed.Get(name)
		if g.contested[t] && p.Request.At(t) > 0 && q.Used().Get(name) > guaranteed {
			return true
		}
	}
	return false
}

// spares judges law 2 for one queue, in all types that it guarantees: also in those that
// are not contested, which is stricter than the law. The asker's request counts in queues
// above it.
func (g *guarantees) spares(q *queues.Queue, p *planner.Pod, above bool) error {
	for t, name := range g.node.Types {
		guaranteed, named := q.Guaranteed.Get(name)
		if !named || p.Request.At(t) <= 0 {
			continue
		}
		has, least := q.Used().Get(name), guaranteed
		left := has.Sub(resources.Amount(planner.Plus(g.taken[q.ID].At(t), p.Request.At(t))))
		if above {
			arriving, own := q.Arriving.Get(name), resources.Amount(g.ask.Arriving.At(t))
			has = has.Add(arriving).Sub(own)
			left = left.Add(arriving).Sub(own)
			if g.ask.Leaf != queues.NoQueue {
				left = left.Add(resources.Amount(g.ask.Request.At(t)))
			}
			least = min(guaranteed, has)
		}
		if left < least {
			return fmt.Errorf("law 2: queue %s would have %s of %s guaranteed %s",
				q.Path, resources.Format(name, left), resources.Format(name, guaranteed), name)
		}
	}
	return nil
}
