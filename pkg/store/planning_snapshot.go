package store

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// planningWorld returns the current planning snapshot, for plans made without the lock.
func (s *Store) planningWorld() *planner.World {
	s.renew()
	return &planner.World{
		Types: s.preemption.Snapshot.Names(), Queues: s.cache.Snapshot(),
		Nodes: s.preemption.Snapshot.Nodes(), Budgets: s.disruptionsLeft(true),
	}
}

// renew makes the nodes of the planning snapshot again that changed.
func (s *Store) renew() {
	s.preemption.Snapshot.Renew(func(name string) *planner.Node {
		if n := s.cache.Nodes.Get(name); n != nil && n.Known() {
			return s.viewOf(&s.preemption.Snapshot.Types, n, "")
		}
		return nil
	})
}

// viewOf returns a node as a plan for a preemptor sees it.
func (s *Store) viewOf(t *preemption.Types, n *cache.Node, asker types.UID) *planner.Node {
	on := s.podsOn(n)
	pods := make([]*planner.Pod, 0, len(on))
	for _, p := range on {
		pods = append(pods, s.podView(t, p))
	}
	return planner.NewNode(n.Name(), t.Amounts(n.Allocatable()), t.Amounts(s.free(n, asker)), pods)
}

func (s *Store) podView(t *preemption.Types, p *pod) *planner.Pod {
	v := &planner.Pod{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Leaf: queues.NoQueue,
		Request: t.Amounts(p.Uses()), Priority: p.Priority, Created: p.Created,
		OptedOut: s.cache.Protection.OptedOut(p.Pod, s.preemption.IgnorePodOptOut), Originator: s.cache.Originators.Is(&p.cachePod), Slow: s.preemption.Grace(p.Pod) > s.preemption.HoldTimeout, Protection: s.protection(p), Grace: p.DeletionGrace, Budgets: s.cache.Protection.Budgets(p.guarded()),
	}
	if p.app != nil {
		v.Leaf, v.App = p.app.Leaf, p.app.Name.String()
	}
	return v
}

// askOf returns a pending pod as plans see it.
func askOf(t *preemption.Types, p *pod) *planner.Ask {
	ask := &planner.Ask{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Leaf: queues.NoQueue,
		Request: t.Amounts(p.Request), Priority: p.Priority, Never: p.NeverPreempts,
	}
	if p.app != nil {
		ask.Leaf, ask.App = p.app.Leaf, p.app.Name.String()
	}
	return ask
}
