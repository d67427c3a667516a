package holds

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Awaited returns the pods that an asker with a hold waits for, some of them twice: its victims, the
// pods that leave its node anyway, and those that leave its full queues.
func (x *Holds) Awaited(p *model.Pod, h *reservations.Hold) []types.UID {
	out := x.AwaitedOfQueues(p)
	if n := x.m.Cache.Nodes.Get(h.Node); n != nil {
		for _, p := range x.m.PodsOn(n) {
			if x.m.CountsAsLeaving(p) {
				out = append(out, p.UID)
			}
		}
	}
	for _, uid := range h.Chosen {
		if v := x.m.Pods[uid]; v != nil && v.On() != nil {
			out = append(out, uid)
		}
	}
	return out
}

// AwaitedOfQueues is [cache.Books.Awaited] for an asker; none for a pod without a queue.
func (x *Holds) AwaitedOfQueues(p *model.Pod) []types.UID {
	if p.App == nil {
		return nil
	}
	return x.m.Cache.Books.Awaited(p.App.Leaf, p.Request)
}

// AwaitsItsOwn tells, of an asker that fits its node once leaving pods are gone, whether no
// holder is before it and pods of its own ([model.Pod.IsOfItsOwn]) that no plan chose are leaving
// the node. It does not check whether it would fit beside them, because amounts do not show port
// conflicts.
func (x *Holds) AwaitsItsOwn(asker *model.Pod, n *cache.Node) bool {
	return len(x.NodeBoundBefore(asker)) == 0 && slices.ContainsFunc(x.m.PodsOn(n), func(p *model.Pod) bool {
		return x.m.CountsAsLeaving(p) && p.ChosenBy == "" && p.IsOfItsOwn(asker)
	})
}

// noteOwn notes which of the pods that an asker waits for are of its own namespace, chosen or leaving
// anyway, beside those of its hold before. It bounds the hold of a node-bound asker by what is left
// for them from now on; see [preemption.OwnTime]. The members of a PodGroup that has not started
// count on the room of their nodes, so the hold of one of them keeps the node.
func (x *Holds) noteOwn(p *model.Pod, h *reservations.Hold, now time.Time) {
	var own []types.UID
	for _, uid := range h.Awaited {
		if x.m.Pods[uid].Namespace == p.Namespace {
			own = append(own, uid)
		}
	}
	h.Own = nil
	if old, _ := x.m.Preemption.Ledger.Of(p.UID); !p.GroupIncomplete() {
		h.Own = append(old.Own, own...)
	}
	if p.RequiredNode == "" || len(own) == 0 {
		return
	}
	timeout := x.m.Preemption.HoldTimeout
	left, begins := x.m.Preemption.OwnTime.Begin(p.UID, p.RequiredNode, p.Namespace, timeout, now)
	if latest := now.Add(left - timeout); begins && (h.LatestFrom.IsZero() || latest.Before(h.LatestFrom)) {
		h.LatestFrom = latest
	}
}

// Left returns the chosen pods that our delete has not reached yet, by UID.
func (x *Holds) Left(h *reservations.Hold) []*model.Pod {
	var out []*model.Pod
	for _, uid := range h.Chosen {
		if v := x.m.Pods[uid]; v != nil && v.ChosenBy == h.Asker && v.On() != nil && x.m.GoesSooner(v) {
			out = append(out, v)
		}
	}
	return out
}

// SetInPermit notes which pods wait in a Permit plugin and may be victims of an asker.
// Pods of its own PodGroup may not: the asker would get room, but its group would
// lack a member.
func (x *Holds) SetInPermit(asker *model.Pod, uids []types.UID) {
	waits := make(map[types.UID]bool, len(uids))
	for _, uid := range uids {
		if p := x.m.Pods[uid]; p != nil && (p.PodGroup == nil || p.PodGroup != asker.PodGroup) {
			if waits[uid] = true; !x.m.Preemption.InPermit[uid] {
				x.m.TouchPod(p)
			}
		}
	}
	for uid := range x.m.Preemption.InPermit {
		if p := x.m.Pods[uid]; p != nil && !waits[uid] {
			x.m.TouchPod(p)
		}
	}
	x.m.Preemption.InPermit = waits
}

// ListLeaving lists leaving pods, with their nodes if not the given one, and the time when
// the last of them is gone.
func (x *Holds) ListLeaving(uids []types.UID, node string) string {
	names, last := x.list(uids, node)
	if last.IsZero() {
		return names
	}
	return names + " (by " + last.UTC().Format(time.RFC3339) + ")"
}

// list lists pods, with their nodes if not the given one, and returns the latest end of a grace
// period; zero if none of them is deleted.
func (x *Holds) list(uids []types.UID, node string) (list string, last time.Time) {
	slices.Sort(uids)
	var names []string
	for _, uid := range slices.Compact(uids) {
		v := x.m.Pods[uid]
		name := v.Namespace + "/" + v.Name
		if v.On().Name() != node {
			name += " of node " + v.On().Name()
		}
		names, last = append(names, name), preemption.Latest(last, v.GoneBy)
	}
	slices.Sort(names)
	return preemption.Listed(names), last
}

// lacks tells whether the amounts of a node, or a max on the path of an asker, have too little room
// for it after the leaving pods and those in without are gone. Room that other askers wait for does
// not count. If false and the asker still is not placed, filters refuse it for another reason, such
// as ports.
func (x *Holds) lacks(p *model.Pod, n *cache.Node, without []*model.Pod) bool {
	free := x.m.FreeBeside(n, p).SubFree(x.m.WaitingBefore(p)[n.Name()]) // they wait for free room only
	for _, v := range without {
		if v.On() == n {
			free = free.Add(v.Uses())
		}
	}
	if !free.Covers(p.Request) {
		return true
	}
	gone := func(q *queues.Queue) (sum resources.Vector) {
		for _, v := range without {
			if v.App != nil && queues.IsWithin(x.m.Cache.Tree(), v.App.Leaf, q.ID) { // a claim may name any pod
				sum = sum.Add(v.Amount())
			}
		}
		return sum
	}
	return queues.OverExpected(x.m.Cache.Tree(), p.App.Leaf, p.Request, gone) != nil
}

// ErrRoomWithoutVictim is returned for a plan with a victim that is not needed any more.
var ErrRoomWithoutVictim = errors.New("need not go: there is room without it")

// Needed returns an error unless every victim in left is still needed on the current state, without
// the plan. Victims that were chosen for reasons only the filters know are not checked. After a
// restart the reasons are not known: victims are then checked only while none is gone, because a
// new plan costs no pod then.
func (x *Holds) Needed(p *model.Pod, h *reservations.Hold, left []*model.Pod) error {
	if p.Asker.Decision == nil && len(left) < len(h.Chosen) {
		return nil
	}
	for _, uid := range x.NotNeeded(p, x.m.Cache.Nodes.Get(h.Node), left) {
		if v := x.m.Pods[uid]; !slices.Contains(p.Asker.ByFilters, uid) {
			return fmt.Errorf("pod %s/%s %w", v.Namespace, v.Name, ErrRoomWithoutVictim)
		}
	}
	return nil
}

// NotNeeded returns the pods of going that are not needed: the asker has room by amounts
// even if such a pod stays and the others go.
func (x *Holds) NotNeeded(p *model.Pod, n *cache.Node, going []*model.Pod) (out []types.UID) {
	for i, v := range going {
		if others := slices.Delete(slices.Clone(going), i, i+1); !x.lacks(p, n, others) {
			out = append(out, v.UID)
		}
	}
	return out
}

// NodeBoundBefore is HoldersBefore for a node-bound pod and its node, whether it holds that node
// already or not.
func (x *Holds) NodeBoundBefore(p *model.Pod) []reservations.Hold {
	own := &reservations.Hold{Asker: p.UID, NodeBound: true, Priority: p.Priority, Created: p.Created}
	return slices.DeleteFunc(x.m.HoldersBefore(p.RequiredNode, p.UID), func(h reservations.Hold) bool { return !h.Before(own) })
}
