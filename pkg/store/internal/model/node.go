package model

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// RouteNodes passes on which nodes changed for plans; see [cache.Nodes].
func (x *Model) RouteNodes() {
	for _, name := range x.Cache.Nodes.Take() {
		x.Preemption.Watches.Change(preemption.WatchedNode(name))
		x.Preemption.Snapshot.MarkStale(name)
	}
}

// Touch notes that a node changed for plans. nil stands for no node.
func (x *Model) Touch(n *cache.Node) {
	x.Cache.Nodes.Changed(n)
	x.RouteNodes()
}

// Freed notes that a node is kept for fewer pods than before (a hold ended or keeps less, or a pod no
// longer goes first there), so other pods may have more room. It ignores "".
func (x *Model) Freed(node string) {
	if node == "" {
		return
	}
	x.Cache.Nodes.ChangedRoom(x.Cache.Nodes.Get(node))
	x.RouteNodes()
	if !slices.Contains(x.Out.Vacated, node) {
		x.Out.Vacated = append(x.Out.Vacated, node)
	}
}

// TouchPod notes that the pod changed for plans and readers.
func (x *Model) TouchPod(p *Pod) {
	x.History.Changed(p)
	x.Touch(p.On())
}

// TouchAll notes that all nodes changed for plans.
func (x *Model) TouchAll() {
	x.Cache.Nodes.AllChanged()
	x.RouteNodes()
}

// PlaceOn puts a pod with its usage on a node, or takes it off its node if name is
// empty. It may be called again.
func (x *Model) PlaceOn(p *Pod, name string, uses resources.Vector) {
	x.History.Changed(p)
	x.Cache.Nodes.Place(&p.CachePod, name, uses)
	x.RouteNodes()
}

// PodsOn returns the pods on a node by UID.
func (x *Model) PodsOn(n *cache.Node) []*Pod {
	var out []*Pod
	for _, p := range n.SortedPods() {
		out = append(out, x.Pods[p.UID])
	}
	return out
}

// Free is what will be free for an asker on a node once leaving pods are gone and the
// node's holders are placed; if the asker is a holder, only the holders before it
// count.
func (x *Model) Free(n *cache.Node, asker types.UID) resources.Vector {
	free := n.Room()
	for on := range n.Pods() {
		if p := x.Pods[on.UID]; x.CountsAsLeaving(p) {
			free = free.Add(p.Uses())
		}
	}
	for _, h := range x.HoldersBefore(n.Name(), asker) {
		free = free.Sub(h.Request)
	}
	return free
}

// WaitingBefore returns, by node, the requests of pods that wait for room which becomes free without
// victims. A plan for p counts them as placed (docs/laws.md, holds). They are pods of p's queue, of no
// lower priority and not of its PodGroup; if p holds a node, those that waited before its hold began.
func (x *Model) WaitingBefore(p *Pod) map[string]resources.Vector {
	before := map[string]resources.Vector{}
	for uid, waiting := range x.Preemption.Waiting {
		w, node := x.Pods[uid], waiting.Node
		switch {
		case uid == p.UID, w.App.Leaf != p.App.Leaf, w.Priority < p.Priority, w.PodGroup != nil && w.PodGroup == p.PodGroup:
		case p.Asker.HoldsNode() && waiting.Since.After(p.Asker.HeldFrom): // its plan counted the holder as placed
		default:
			before[node] = before[node].Add(w.Request)
		}
	}
	return before
}

// StopWaiting ends the wait of an asker for room of a node, if it waits. Others may wait for that
// room now, so the node changed for plans.
func (x *Model) StopWaiting(p *Pod) {
	x.Touch(x.Cache.Nodes.Get(x.Preemption.Waiting[p.UID].Node))
	delete(x.Preemption.Waiting, p.UID)
}

// FreeBeside is Free for an asker beside all other holders, also those after it.
func (x *Model) FreeBeside(n *cache.Node, p *Pod) resources.Vector {
	free := x.Free(n, "")
	if h, ok := x.Preemption.Ledger.Of(p.UID); ok && h.Node == n.Name() {
		free = free.Add(h.Request)
	}
	return free
}

// HoldersBefore returns the holders of a node that come before asker and are not placed yet, in
// order; all that are not placed if asker is no holder of the node.
func (x *Model) HoldersBefore(node string, asker types.UID) []reservations.Hold {
	before := x.Preemption.Ledger.On(node)
	if i := slices.IndexFunc(before, func(h reservations.Hold) bool { return h.Asker == asker }); i >= 0 {
		before = before[:i]
	}
	return slices.DeleteFunc(before, func(h reservations.Hold) bool {
		p := x.Pods[h.Asker]
		return p != nil && p.State.HasNode() // placed, even if its bind is not seen yet: its hold does not time out
	})
}

// PlanningSnapshot returns the current planning snapshot, for plans made without the lock.
func (x *Model) PlanningSnapshot() *planner.Snapshot {
	x.UpdateSnapshot()
	return &planner.Snapshot{
		Types: x.Preemption.Snapshot.Names(), Queues: x.Cache.Snapshot(),
		Nodes: x.Preemption.Snapshot.Nodes(), Budgets: x.DisruptionsLeft(true),
	}
}

// UpdateSnapshot makes the nodes of the planning snapshot again that changed.
func (x *Model) UpdateSnapshot() { x.UpdateSome(math.MaxInt) }

// UpdateSome is UpdateSnapshot for some of the nodes. It tells whether others are left. Budgets decide
// which plan is best and not whether there is one, so their changes are looked up here: no plan is made
// because of one.
func (x *Model) UpdateSome(most int) (left bool) {
	if namespaces := x.Cache.Protection.TakeChanged(); len(namespaces) > 0 {
		for n := range x.Cache.Nodes.All() {
			if n.HasPodOf(namespaces) {
				x.Preemption.Snapshot.MarkStale(n.Name())
			}
		}
	}
	return x.Preemption.Snapshot.Update(most, func(name string) *planner.Node {
		if n := x.Cache.Nodes.Get(name); n != nil && n.Known() {
			return x.ViewOf(n, "")
		}
		return nil
	})
}

// ViewOf returns a node as a plan for an asker sees it.
func (x *Model) ViewOf(n *cache.Node, asker types.UID) *planner.Node {
	t, on := &x.Preemption.Snapshot.Types, x.PodsOn(n)
	pods := make([]*planner.Pod, 0, len(on))
	for _, p := range on {
		pods = append(pods, x.PodView(t, p))
	}
	return planner.NewNode(n.Name(), t.Amounts(n.Allocatable()), t.Amounts(x.Free(n, asker)), pods)
}

// PodView returns a pod on a node as plans see it.
func (x *Model) PodView(t *preemption.Types, p *Pod) *planner.Pod {
	v := &planner.Pod{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name,
		Leaf:       queues.NoQueue,
		Request:    t.Amounts(p.Uses()),
		Priority:   p.Priority,
		Created:    p.Created,
		OptedOut:   x.Cache.Protection.OptedOut(p.Pod, x.Preemption.IgnorePodOptOut),
		Originator: x.Cache.Originators.Is(&p.CachePod),
		Slow:       x.Preemption.Grace(p.Pod) > x.Preemption.HoldTimeout,
		Protection: x.protection(p),
		Grace:      p.DeletionGrace,
		Refusal:    x.Preemption.Undeletable.Why(p.UID),
		Budgets:    x.Cache.Protection.Budgets(p.Guarded()),
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

// GoesSooner tells whether our delete would make a pod leave earlier: it is not deleted yet, or its
// grace period is longer than that of a victim and than the longest that counts as leaving.
func (x *Model) GoesSooner(p *Pod) bool {
	return !p.Deleting || p.DeletionGrace > max(x.Preemption.LongestLeaving(), x.Preemption.Grace(p.Pod))
}

// protection returns why a pod is never a victim.
func (x *Model) protection(p *Pod) planner.Protection {
	switch {
	case x.CountsAsLeaving(p):
		return planner.Leaving
	case !x.GoesSooner(p):
		return planner.Lingering
	case x.Preemption.Undeletable.Why(p.UID) != "":
		return planner.Refused
	case p.Static:
		return planner.Static
	case (p.RequiredNode != "" || p.MaybeDaemon) && !p.Deleting: // the controller of a DaemonSet ignores pods that are being deleted
		return planner.DaemonSet
	case p.State == state.Assumed && !x.Preemption.InPermit[p.UID]:
		return planner.Binding
	case p.Foreign:
		return planner.Foreign
	}
	return planner.Unprotected
}
