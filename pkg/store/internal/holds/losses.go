package holds

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// countLoss counts a loss of a pod, or of its PodGroup, and returns the reason, which
// includes the pause.
func (x *Holds) countLoss(p *model.Pod, why reasons.Reason, undone bool, now time.Time) (reasons.Reason, int) {
	l, waits := &p.Asker.Losses, "the pod"
	if p.GroupIncomplete() {
		l, waits = &p.PodGroup.Data.Losses, fmt.Sprintf("any pod of PodGroup %s", p.PodGroup.Name())
	}
	if undone {
		l.Undo(why, waits, &x.m.Preemption.Options, now)
	} else {
		l.Lose(why, waits, &x.m.Preemption.Options, now)
	}
	p.Asker.Refused, p.Asker.TriedAt = l.Why, now
	x.m.History.NotePlanResult(p, reasons.HoldGivenUp, l.Until)
	return l.Why, l.Count + l.Undone
}

// groupTook tells whether an asker lacks room on its node because of its own PodGroup: pods of
// it took the room or gave up their holds. It is so if the asker would not fit even without the
// pods of others that came or grew since the hold began. Pods that hold or held a node are not
// among these: they use the room that was made for them.
func (x *Holds) groupTook(p *model.Pod, h *reservations.Hold) bool {
	n := x.m.Cache.Nodes.Get(h.Node)
	if n == nil || !p.GroupIncomplete() {
		return false
	}
	free := x.m.Free(n, p.UID)
	withoutOthers := free
	for _, o := range x.m.PodsOn(n) {
		own := o.Asker.HoldsNode() || !o.Asker.PlacedAt().IsZero()
		if o.PodGroup != p.PodGroup && !own && o.Arrival() > p.Asker.ArrivalsAtHold {
			withoutOthers = withoutOthers.Add(o.Request)
		}
	}
	return !free.Covers(p.Request) && !withoutOthers.Covers(p.Request)
}

// CountTakenRoom counts a loss of a node-bound asker that needs further victims although victims
// were deleted for it: others took their room. Each decision loses its room once.
func (x *Holds) CountTakenRoom(p *model.Pod, now time.Time) {
	h, held := x.m.Preemption.Ledger.Of(p.UID)
	if held && h.OnlyThisNode() && h.Decision != p.Asker.Losses.LostDecision {
		why, n := x.countLoss(p, x.tookNode(p, x.m.Cache.Nodes.Get(h.Node)), false, now)
		p.Asker.Losses.LostDecision, p.Asker.ArrivalsAtHold = h.Decision, x.m.Cache.Nodes.Arrivals()
		x.m.EnterStep(p, output.Step{Kind: output.StepLost, Hold: h, Reason: why, Losses: n}, now)
		x.m.AddWork(output.Work{Ref: p.Ref(), Kind: output.WorkTell, Hold: h, Reason: why})
	}
}

// tookNode returns which pods took the room on a node that was made for a pod.
func (x *Holds) tookNode(p *model.Pod, n *cache.Node) reasons.Reason {
	others := slices.DeleteFunc(x.m.PodsOn(n), func(o *model.Pod) bool { return o == p })
	return tookRoom("on node "+n.Name(), others, p.Asker.ArrivalsAtHold)
}

// tookQueue returns which pods took the room in a queue that was made for a pod.
func (x *Holds) tookQueue(p *model.Pod, id queues.ID) reasons.Reason {
	var others []*model.Pod
	for a := range x.m.Apps.Records() {
		if !queues.IsWithin(x.m.Cache.Tree(), a.Leaf, id) {
			continue
		}
		for o := range a.Living() {
			if o != &p.CachePod && o.On() != nil {
				others = append(others, x.m.Pods[o.UID])
			}
		}
	}
	return tookRoom("in queue "+x.m.Cache.Path(id), others, p.Asker.ArrivalsAtHold)
}

// Taken returns what took the room that was made for an asker: pods on its node or in a
// queue at its max, or a limit of its user or group. It is none if the room is there, or
// will be once the awaited pods are gone, and for a pod without a hold.
func (x *Holds) Taken(p *model.Pod) reasons.Reason {
	h, held := x.m.Preemption.Ledger.Of(p.UID)
	if !held {
		return reasons.Reason{}
	}
	n, over := x.m.Cache.Nodes.Get(h.Node), OverMax(x.m.Cache.Tree(), p)
	quota, limits := queues.Admit(x.m.Cache.Tree(), p.App.Leaf, p.Request, queues.OnAllocated), x.m.CheckPodLimits(p)
	switch {
	case !x.m.Free(n, p.UID).Covers(p.Request):
		return x.tookNode(p, n)
	case !h.Clear() && over != nil:
		return x.tookQueue(p, over.ID)
	case !h.Clear():
	case !quota.OK():
		return x.tookQueue(p, quota.At)
	case !limits.OK():
		return reasons.New(reasons.HoldSuperseded, "%s", limits.Reason.Text)
	}
	return reasons.Reason{}
}

// OverMax is the queue in which an asker would exceed the max, with all arriving and
// without leaving pods; nil for none.
func OverMax(v queues.View, p *model.Pod) *queues.Queue {
	if p.App == nil {
		return nil
	}
	itself := func(*queues.Queue) resources.Vector { return p.Charged(cache.Arriving) }
	return queues.OverExpected(v, p.App.Leaf, p.Request, itself)
}

// tookRoom names the pods that came or grew after a hold began, by arrival, with their
// scheduler if they are foreign. None are known after a restart, and where the
// asker or the quota changed.
func tookRoom(where string, pods []*model.Pod, began uint64) reasons.Reason {
	pods = slices.DeleteFunc(pods, func(p *model.Pod) bool { return p.Arrival() <= began })
	slices.SortFunc(pods, func(a, b *model.Pod) int {
		return cmp.Or(cmp.Compare(a.Arrival(), b.Arrival()), cmp.Compare(a.UID, b.UID))
	})
	var names []string
	for _, p := range pods {
		name := p.Namespace + "/" + p.Name
		if p.Scheduler != "" {
			name += " of " + p.Scheduler
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return reasons.New(reasons.HoldSuperseded, "the room %s is no longer enough", where)
	}
	return reasons.New(reasons.HoldSuperseded, "others took the room %s: %s", where, preemption.Listed(names))
}

// SuspectRefusal asks the executor how a pod that is gone has ended; see
// [preemption.KubeletRejections].
func (x *Holds) SuspectRefusal(p *model.Pod, now time.Time) {
	h, holds := x.m.Preemption.Ledger.Of(p.UID)
	placed := p.Asker.PlacedAt()
	if holds && h.OnlyThisNode() && p.Node == h.Node {
		placed = now
	}
	if x.m.Standby || p.Deleting || !preemption.MayBeRefused(placed, now) {
		return
	}
	if !holds {
		h = reservations.Hold{Asker: p.UID, Namespace: p.Namespace, Name: p.Name, Node: p.Node, NodeBound: p.RequiredNode != ""}
	}
	r := preemption.KubeletRejection{
		Ref:        p.Ref(),
		Controller: p.Controller,
		OnlyNode:   p.RequiredNode,
		Hold:       h,
		Queue:      p.Queue(x.m.Cache.Tree()),
		Losses:     p.Asker.Losses,
	}
	if p.On() != nil {
		r.Took = x.tookNode(p, p.On()).Text
	}
	x.m.Preemption.KubeletRejections.Suspect(r, now)
	x.m.AddWork(output.Work{Ref: p.Ref(), Kind: output.WorkInquire, Hold: h})
}

// KubeletRefused counts a loss if a kubelet had no room for an asker, and passes the
// losses on to the pod that replaces it.
func (x *Holds) KubeletRefused(uid types.UID, reason string, now time.Time) reasons.Reason {
	r := x.m.Preemption.KubeletRejections.Answer(uid, reason, &x.m.Preemption.Options, now)
	if r == nil {
		return reasons.Reason{}
	}
	gone := objects.Identity{UID: r.UID, Namespace: r.Namespace, Name: r.Name}
	p := &model.Pod{CachePod: model.CachePod{Pod: &objects.Pod{Identity: gone}}} // for EnterStep
	x.m.EnterStep(p, output.Step{Kind: output.StepLost, Queue: r.Queue, Hold: r.Hold, Reason: r.Losses.Why, Losses: r.Losses.Count}, now)
	if heir := x.m.Pods[r.Heir]; heir != nil || r.Controller == "" {
		x.passLosses(r, heir)
	}
	return r.Losses.Why
}

// Inherit passes the losses of a refused pod to a new pod of the same controller, now or
// once the refusal is known.
func (x *Holds) Inherit(p *model.Pod, now time.Time) {
	if r := x.m.Preemption.KubeletRejections.Replace(p.Pod, now); r != nil {
		x.passLosses(r, p)
	}
}

// passLosses passes the losses of a refused pod to a pod, if that is pending, and forgets
// the refused pod.
func (x *Holds) passLosses(r *preemption.KubeletRejection, heir *model.Pod) {
	x.m.Preemption.KubeletRejections.Done(r)
	if heir == nil || heir.State.HasNode() || heir.Node != "" {
		return
	}
	heir.Asker.Losses = r.Losses.Inherited()
	x.m.History.NotePlanResult(heir, reasons.HoldGivenUp, r.Losses.Until)
}
