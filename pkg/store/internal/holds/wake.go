package holds

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Gone tells the ledger that a pod is gone. It calls WakeHolders for the node of the pod, "" for none,
// and for each node that is held by a pod which waited for it.
func (x *Holds) Gone(uid types.UID, node string, now time.Time) {
	nodes := []string{node}
	for _, asker := range x.m.Preemption.Ledger.VictimGone(uid, now) {
		h, _ := x.m.Preemption.Ledger.Of(asker)
		nodes = append(nodes, h.Node)
		x.m.Pods[asker].Asker.Missed = 0 // there is more room than when it was tried
	}
	slices.Sort(nodes)
	for _, name := range slices.Compact(nodes) {
		x.WakeHolders(name, uid, now)
	}
}

// Stays tells the ledger that a pod on a node no longer counts as leaving, and lets the
// askers through that counted on its room. One that is in its cycle is let through
// after it.
func (x *Holds) Stays(v *model.Pod, now time.Time) {
	v.On().NoteRefiltered()
	for _, asker := range x.m.Preemption.Ledger.VictimStays(v.UID) {
		p := x.m.Pods[asker]
		h, _ := x.m.Preemption.Ledger.Of(asker)
		x.retryOthers(h.Node)
		if x.Ready(p, &h) || !x.hasRoom(p, &h) { // skip a holder that has room and leaves it to a node-bound pod or to its PodGroup
			x.states.ReturnBy(p, now)
		}
	}
}

// WakeHolders calls WakeHolder for the holders of a node except one, and retryOthers, after room there
// became free or was taken, or a hold keeps less. With less room a holder may not fit any more, and one
// after it that left it that room may fit now.
func (x *Holds) WakeHolders(node string, except types.UID, now time.Time) {
	x.retryOthers(node)
	for _, h := range x.m.Preemption.Ledger.On(node) {
		if h.Asker != except {
			x.WakeHolder(x.m.Pods[h.Asker], now)
		}
	}
}

// retryOthers has the pods tried again that a node's holds keep off, if one keeps only its request.
func (x *Holds) retryOthers(node string) {
	if len(x.m.Preemption.Ledger.RequestOnly(node)) > 0 {
		x.m.Freed(node)
	}
}

// wakeIfLessIsKept has others than an asker tried again when a hold of the node begins to keep only
// its request. Only that change counts: if each decision had them tried again, two askers of one node
// would wake each other without end.
func (x *Holds) wakeIfLessIsKept(node string, before map[types.UID]bool, asker types.UID, now time.Time) {
	for holder := range x.m.Preemption.Ledger.RequestOnly(node) {
		if !before[holder] {
			x.WakeHolders(node, asker, now)
			return
		}
	}
}

// WakeMembers calls WakeHolder for members of the PodGroups that changed, where the room of
// the node that a member holds is not left to others any more.
func (x *Holds) WakeMembers(now time.Time) {
	for _, g := range x.m.Pending.PodGroups.Touched() {
		if g.OthersFirst() {
			continue
		}
		for _, p := range g.Select(func(p *model.Pod) bool { return p.Asker.HoldsNode() }) {
			x.WakeHolder(p, now)
		}
	}
}

// WakeRefused calls WakeHolder for the holders that a quota refused and that no quota
// refuses any more.
func (x *Holds) WakeRefused(now time.Time) {
	for _, p := range x.m.Pending.BlockedHolders.Take(model.ComparePods) {
		if !x.states.NoteRefusal(p) {
			x.WakeHolder(p, now)
		}
	}
}

// WakeHolder lets an asker with a hold through if it may be placed now.
func (x *Holds) WakeHolder(p *model.Pod, now time.Time) {
	h, ok := x.m.Preemption.Ledger.Of(p.UID)
	if !ok || p.State.HasSlot() || p.State.HasNode() {
		return
	}
	if !x.Ready(p, &h) {
		x.states.NoteRefusal(p)
		return
	}
	if p.State == state.BackingOff && p.OnlyTimeHelps && p.BackoffEnds.After(now) {
		return // it had room: a step after the choice of the node failed
	}
	x.states.LetThrough(p, now)
}

// Ready tells whether an asker may be placed on the node that it holds: all awaited pods
// are gone, or it has room already and no other member of its PodGroup may need that room.
// If the filters refuse the node then, the scheduler's cache may be late.
func (x *Holds) Ready(p *model.Pod, h *reservations.Hold) bool {
	membersFirst := p.PodGroup != nil && p.PodGroup.OthersFirst()
	return !x.behind(p, h) && (h.Clear() || !membersFirst && x.hasRoom(p, h))
}

// RetryHolders lets the holders of a changed node through although their victims are still there,
// because the filters decide whether the node can take them at all; see Store.NodeRefuses and
// Store.ApplyPlan. A holder that is in its cycle is let through after it. Node-bound pods go first
// there again. Other pods are tried again, because filters that saw the change earlier kept more of
// them off.
func (x *Holds) RetryHolders(n *cache.Node, now time.Time) {
	n.NoteRefiltered()
	x.m.Preemption.NodeBound.Reset(n.Name(), now)
	x.m.Freed(n.Name())
	for _, h := range x.m.Preemption.Ledger.On(n.Name()) {
		x.states.ReturnBy(x.m.Pods[h.Asker], now)
	}
}

// ReadBefore tells whether the filters may have read a node, in the current cycle of a pod, before
// its last change that matters to them. Call it at the end of a cycle, because the state of a
// foreign pod does not say whether it is in one.
func (x *Holds) ReadBefore(p *model.Pod, node string) bool {
	n := x.m.Cache.Nodes.Get(node)
	return n != nil && (p.State == state.Scheduling || p.Foreign && p.NodesGeneration > 0) && n.RefilteredSince(p.NodesGeneration)
}

// behind tells whether a node-bound pod is before an asker that holds its node, and keeps the node
// from it. The asker then waits for that pod, regardless of free room.
func (x *Holds) behind(p *model.Pod, h *reservations.Hold) bool {
	return slices.ContainsFunc(x.m.HoldersBefore(h.Node, p.UID), func(before reservations.Hold) bool {
		return before.NodeBound && (before.Namespace == p.Namespace || !x.m.Preemption.Ledger.RequestOnly(h.Node)[before.Asker])
	})
}

// hasRoom tells whether an asker fits its node now, while leaving pods still count, by amounts
// and every quota, and leaves room for the holders before it.
func (x *Holds) hasRoom(p *model.Pod, h *reservations.Hold) bool {
	n := x.m.Cache.Nodes.Get(h.Node)
	if n == nil {
		return false
	}
	left := reservations.LeftBeside(n.Room(), x.m.HoldersBefore(h.Node, p.UID), func(uid types.UID) resources.Vector {
		if v := x.m.Pods[uid]; v != nil && v.On() == n && v.ChosenBy != p.UID { // its own victims may still be there
			return v.Uses()
		}
		return resources.Vector{}
	})
	return left.Covers(p.Request) && (p.App == nil || x.m.CheckPodQuota(p, queues.OnAllocated).OK())
}

// FailedHolder handles a failed cycle of an asker with a hold. It is tried again soon
// if it is [Holds.Ready], and at once if the filters did not see the node as it is.
func (x *Holds) FailedHolder(p *model.Pod, now time.Time) {
	if p.State != state.Scheduling {
		return // already handled; the next cycle of an Admitted pod has not begun
	}
	h, _ := x.m.Preemption.Ledger.Of(p.UID)
	stale := x.ReadBefore(p, h.Node)
	x.states.EndCycle(p)
	p.OnlyTimeHelps, p.BackoffEnds = false, now.Add(x.m.Options.Backoff(1))
	p.Reason = preemption.MakingRoom(&h)
	switch {
	case x.Ready(p, &h):
		x.states.BackOff(p, x.NextTry(p, &h, now))
	case stale:
		x.states.BackOff(p, now)
	}
}

// NextTry counts a failed cycle of an asker that is ready, and returns when it is tried
// again.
func (x *Holds) NextTry(p *model.Pod, h *reservations.Hold, now time.Time) time.Time {
	wait, last := p.Asker.Miss(x.m.Preemption.RetryInterval)
	if last {
		x.m.AddWork(output.Work{Ref: p.Ref(), Kind: output.WorkRecord, Hold: *h})
	}
	return now.Add(wait)
}

// AwaitsHeldNode tells whether a pod waits for the room of its held node, so that events on
// other nodes do not help it.
func (x *Holds) AwaitsHeldNode(p *model.Pod) bool {
	h, _ := x.m.Preemption.Ledger.Of(p.UID) // zero for none
	return len(h.Chosen) > 0 && (!h.Clear() || p.Asker.IsTried())
}
