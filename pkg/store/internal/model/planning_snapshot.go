package model

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// PlanningWorld returns the current planning snapshot, for plans made without the lock.
func (x *Model) PlanningWorld() *planner.World {
	x.Renew()
	return &planner.World{
		Types: x.Preemption.Snapshot.Names(), Queues: x.Cache.Snapshot(),
		Nodes: x.Preemption.Snapshot.Nodes(), Budgets: x.DisruptionsLeft(true),
	}
}

// Renew makes the nodes of the planning snapshot again that changed.
func (x *Model) Renew() {
	x.Preemption.Snapshot.Renew(func(name string) *planner.Node {
		if n := x.Cache.Nodes.Get(name); n != nil && n.Known() {
			return x.ViewOf(&x.Preemption.Snapshot.Types, n, "")
		}
		return nil
	})
}

// ViewOf returns a node as a plan for a preemptor sees it.
func (x *Model) ViewOf(t *preemption.Types, n *cache.Node, asker types.UID) *planner.Node {
	on := x.PodsOn(n)
	pods := make([]*planner.Pod, 0, len(on))
	for _, p := range on {
		pods = append(pods, x.PodView(t, p))
	}
	return planner.NewNode(n.Name(), t.Amounts(n.Allocatable()), t.Amounts(x.Free(n, asker)), pods)
}

// PodView returns a pod on a node as plans see it.
func (x *Model) PodView(t *preemption.Types, p *Pod) *planner.Pod {
	v := &planner.Pod{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Leaf: queues.NoQueue,
		Request: t.Amounts(p.Uses()), Priority: p.Priority, Created: p.Created,
		OptedOut: x.Cache.Protection.OptedOut(p.Pod, x.Preemption.IgnorePodOptOut), Originator: x.Cache.Originators.Is(&p.CachePod), Slow: x.Preemption.Grace(p.Pod) > x.Preemption.HoldTimeout, Protection: x.protection(p), Grace: p.DeletionGrace, Budgets: x.Cache.Protection.Budgets(p.Guarded()),
	}
	if p.App != nil {
		v.Leaf, v.App = p.App.Leaf, p.App.Name.String()
	}
	return v
}

// AskOf returns a pending pod as plans see it.
func AskOf(t *preemption.Types, p *Pod) *planner.Ask {
	ask := &planner.Ask{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Leaf: queues.NoQueue,
		Request: t.Amounts(p.Request), Priority: p.Priority, Never: p.NeverPreempts,
	}
	if p.App != nil {
		ask.Leaf, ask.App = p.App.Leaf, p.App.Name.String()
	}
	return ask
}

// protection returns why a pod is never a victim.
func (x *Model) protection(p *Pod) planner.Protection {
	switch {
	case p.Lingers(x.Preemption.HoldTimeout):
		return planner.Lingering
	case p.Leaves():
		return planner.Leaving
	case p.Static:
		return planner.Static
	case p.RequiredNode != "" || p.MaybeDaemon:
		return planner.DaemonSet
	case p.State == state.Assumed && !x.Preemption.InPermit[p.UID]:
		return planner.Binding
	case p.Foreign:
		return planner.Foreign
	}
	return planner.Unprotected
}
