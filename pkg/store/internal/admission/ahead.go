package admission

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Room goes to the pod that could preempt for it. The order ensures that when a pod is
// admitted (criterion 2 of pkg/queues/order/compare.go). It is checked again when a pod has
// found a node, because others that go before it may have come since, and pods that found
// no node or that a max refuses are not in the order. If such pods fit the node, and the
// node or a max has no room for all of them beside the pod that found it, that pod goes
// back to the order and they go first.
//
//	Scheduling, found a node ── no pod is ahead of it ──► Assumed
//	   │
//	   └── pods ahead of it fit the node ─► Queued; those of them that found no node, too
//
// Only amounts are compared. A pod ahead that the filters refuse is tried once: then it is
// Unschedulable, and is skipped until the node has more room.
//
// The scheduler's snapshot and the store get events separately. If the snapshot has fewer pods on
// the node than the store, the store does not know yet which queues are below their guarantees. The
// pod goes back to the order until it does, at most MostGivenWay times.

// MostGivenWay is how often in a row a pod that found a node goes back to the order. Without
// a bound pods that give way to each other would be tried for ever.
const MostGivenWay = 20

// GiveWay puts a pod that found a node back into the order if others go before it. It tells
// whether it did.
func (x *Slots) GiveWay(p *model.Pod, node string, seen int, now time.Time) bool {
	// putBackForAhead comes first, because putBackForReturned gives the pod a new sort key.
	if p.GaveWay >= MostGivenWay || !x.putBackForAhead(p, node, seen, now) && !x.putBackForReturned(p, now) {
		return false
	}
	p.GaveWay++
	return true
}

// findAhead returns the pods that go before an admitted pod that is about to run on a node,
// in the order of model.ComparePods.
func (x *Slots) findAhead(p *model.Pod, n *cache.Node) []*model.Pod {
	own := p.AskInfo()
	path := x.m.Pending.Order.PathOf(&own)
	if path.IsBelow() {
		return nil
	}
	room := n.Room().Max(p.Request) // the filters found that it fits
	l := &podsAhead{p: p, path: path, room: room, rest: room.Sub(p.Request), instead: x.m.Cache.Books.WithoutSlotOf(&p.CachePod)}
	if tree := x.m.Cache.Tree(); queues.HasQuota(tree, p.App.Leaf) {
		l.demand = queues.NewDemand()
		l.demand.Add(tree, p.App.Leaf, p.App.Owner, p.Request, false)
	}
	for ask := range x.m.Pending.Ahead(path, room) {
		w := x.m.Pods[types.UID(ask.UID())]
		if w.State != state.Unschedulable || n.RoomierSince(w.EquivalenceClass.NodesSeen(w.NodesGeneration)) {
			x.addTo(l, w, w.AskInfo())
		}
		if l.lackRoom() {
			break
		}
	}
	// The latest pod comes first. The queues of a pod are judged without the usage of the pods that come
	// after it in the order: later is the sum of that.
	later := map[queues.ID]resources.Vector{}
	for _, w := range slices.Backward(x.slotsToCompare(l)) {
		other := w.AskInfo()
		other.Later = func(q queues.ID) resources.Vector { return later[q] }
		x.addTo(l, w, other)
		for q := range x.m.Cache.Tree().Ancestors(other.Leaf) {
			later[q.ID] = later[q.ID].Add(other.Own)
		}
	}
	if !l.lackRoom() {
		return nil // all have room
	}
	slices.SortFunc(l.pods, model.ComparePods)
	return l.pods
}

// slotsToCompare returns the pods with a slot that may go before p, with those of which the usage decides
// about it, in the order of model.ComparePods. No pod of a leaf goes first if no queue above it is below its
// guarantee even without what all pods with a slot use.
func (x *Slots) slotsToCompare(l *podsAhead) []*model.Pod {
	admitted := func(q queues.ID) resources.Vector { return x.m.Cache.Tree().Queue(q).Admitted }
	leaves := x.m.Pending.Order.MayBeAhead(x.m.Pending.Window.Leaves(), l.room.Cap(1), admitted, l.path)
	all := l.room.Len() > cache.MostTypes // [resources.Types] has no others, and these may be guaranteed
	if len(leaves) == 0 && !all {
		return nil
	}
	var out []*model.Pod
	for w, leaf := range x.m.Pending.Window.Pods() {
		if all || leaves[leaf] {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, model.ComparePods)
	return out
}

// isExempt tells whether a pod neither goes back to the order for others nor makes others go back:
// it holds a node, is node-bound, or may start only with its PodGroup.
func isExempt(p *model.Pod) bool {
	return p.Asker.HoldsNode() || p.RequiredNode != "" || p.GroupIncomplete()
}

// podsAhead are the pods that go before p, which is about to run on a node.
type podsAhead struct {
	p          *model.Pod
	path       order.Path
	room, rest resources.Vector // of the node, without p; rest is beside p and pods
	pods       []*model.Pod
	demand     *queues.Demand // p and those of pods that a max has room for; nil if p has no quota
	overMax    bool           // a max has no room for all of them
	// instead is the verdict of all quotas on a pod if p waits.
	instead func(*cache.App, resources.Vector) queues.Verdict
}

// lackRoom tells whether the node or a max has no room for p and all pods that go before it.
func (l *podsAhead) lackRoom() bool { return l.overMax || l.rest.HasNegative() }

// addTo adds a pod to the pods ahead of p if it goes before p and may have the room: every
// quota lets it run if p waits. A pod that they refuse is skipped, and the pods behind it count.
func (x *Slots) addTo(l *podsAhead, w *model.Pod, other order.AskInfo) {
	if w == l.p || isExempt(w) || !cache.Fits(w.Pod, l.room) {
		return
	}
	if x.m.Pending.Order.IsAhead(&other, l.path) && (w.State.HasSlot() || l.instead(&w.App.CacheApp, w.Request).OK()) {
		l.pods, l.rest = append(l.pods, w), l.rest.Sub(w.Request)
		l.overMax = l.overMax || l.demand != nil && x.exceeds(w, l.p, l.demand)
	}
}

// exceeds tells whether a max on p's path has no room for w beside p and the pods in demand. If
// every max has room, it adds w to demand. Limits of users do not count, because preemption makes
// no room in them.
func (x *Slots) exceeds(w, p *model.Pod, demand *queues.Demand) bool {
	tree := x.m.Cache.Tree()
	v := queues.Admit(tree, w.App.Leaf, w.Request, queues.OnDemand(demand))
	if v.OK() {
		demand.Add(tree, w.App.Leaf, w.App.Owner, w.Request, false)
		return false
	}
	return queues.IsWithin(tree, p.App.Leaf, v.At)
}

// putBackForAhead puts a pod that found a node back into the order if others go before it, or
// may by events that are not seen yet. It tells whether it did:
//
//	the store is behind the snapshot, and others found no node   back
//	no pod is ahead of p                                         on
//	p lost its slot during its cycle                             back
//	another pod that may run comes first in the order            back
//	a pod that is ahead is about to enter the scheduler's queue  back, with a key behind that one
//	the scheduler's queue has one behind p                       back, with a key behind that one
//	else                                                         on
//
// A pod in Scheduling that was let through before p and has a key before p is not waited for: since
// p is in its cycle, that pod is no longer in the scheduler's queue, because a cycle of it ended with
// an error. With a wait for it, p would be tried again and again until its slot ends.
func (x *Slots) putBackForAhead(p *model.Pod, node string, seen int, now time.Time) bool {
	n := x.m.Cache.Nodes.Get(node)
	if n == nil || isExempt(p) {
		return false
	}
	if n.Known() && seen < n.Len() && x.m.Pending.Demand.AnyBut(p.UID) {
		x.states.putBack(p)
		return true
	}
	ahead := x.findAhead(p, n)
	if len(ahead) == 0 {
		return false
	}
	for _, w := range ahead {
		if w.State.WaitsForNode() {
			x.states.putBack(w)
		}
	}
	if !p.State.HasSlot() {
		x.states.putBack(p)
		return true
	}
	rank, behind := x.rankBehind(p, ahead)
	switch {
	case x.backInOrder(p, ahead, now):
	case behind:
		x.states.putBack(p)
	default:
		return false
	}
	x.m.Pending.Window.Failed()
	if behind { // the scheduler's queue is to try them before p
		x.m.Pending.Keys.Add(p.UID, rank, now.UnixNano())
	}
	return true
}

// rankBehind returns the rank of a sort key with which p comes after the pods ahead of it
// that have a slot. behind tells whether such a pod is about to enter the scheduler's queue, or
// is in it and would be tried after p now.
func (x *Slots) rankBehind(p *model.Pod, ahead []*model.Pod) (rank int64, behind bool) {
	rank = queues.Rank(x.m.Cache.Tree(), p.App.Leaf, p.Priority)
	for _, w := range ahead {
		if w.State == state.Admitted || w.State == state.Scheduling && !x.m.Pending.Keys.Tried(w.UID, p.UID) {
			key, _ := x.m.Pending.Keys.Get(w.UID)
			rank, behind = min(rank, key.Rank), true
		}
	}
	return rank, behind
}

// backInOrder puts an admitted pod back if another pod that may run then comes first in the order.
// Next shows only the first pod of each queue and may hide one that is ahead of p. If no shown pod
// before p may run, a hidden one gets the slot. If none of those may run either, p stays admitted.
func (x *Slots) backInOrder(p *model.Pod, ahead []*model.Pod, now time.Time) bool {
	x.states.putBack(p)
	x.Unblock()
	for ask, ok := x.m.Pending.Order.Next(); ok && ask != p.Ask; ask, ok = x.m.Pending.Order.Next() {
		first := x.m.Pods[types.UID(ask.UID())]
		v := x.m.CheckPodQuota(first, queues.OnCommitted)
		if v.OK() {
			return true
		}
		x.block(ask.Group(), v)
	}
	for _, w := range ahead {
		if w.State == state.Queued && x.m.CheckPodQuota(w, queues.OnCommitted).OK() {
			x.states.LetThrough(w, now)
			return true
		}
	}
	x.states.takeSlot(p, now)
	return false
}

// putBackForReturned puts an admitted pod that found a node back into the order if room is
// scarce for its application, and pods that found no node returned to the order after this pod
// was admitted and are before it. The room is most likely what brought them back. It tells
// whether it did.
func (x *Slots) putBackForReturned(p *model.Pod, now time.Time) bool {
	classes := &x.m.Pending.Classes
	reopened := p.ReopenedAtAdmission != classes.Limit.Reopened()
	if !p.State.HasSlot() || p.Asker.HoldsNode() || !reopened || !classes.Any(p.App.Ordered) || p.EquivalenceClass.Failed() {
		return false
	}
	return x.backInOrder(p, nil, now)
}
