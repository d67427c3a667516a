package holds

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// SuspectRefusal asks the executor how a pod that is gone has ended; see
// [preemption.Refusals].
func (x *Holds) SuspectRefusal(p *model.Pod, now time.Time) {
	h, holds := x.Preemption.Holds.Of(p.UID)
	placed := p.Asks.PlacedAt()
	if holds && h.Binding() && p.Node == h.Node {
		placed = now
	}
	if x.Standby || p.Deleting || !preemption.MayBeRefused(placed, now) {
		return
	}
	if !holds {
		h = reservations.Hold{Asker: p.UID, Namespace: p.Namespace, Name: p.Name, Node: p.Node, Required: p.RequiredNode != ""}
	}
	r := preemption.Refusal{
		Ref: p.Ref(), Controller: p.Controller, OnlyNode: p.RequiredNode, Hold: h, Queue: p.Queue(x.Cache.Tree()), Losses: p.Asks.Losses,
	}
	if p.On() != nil {
		r.Took = x.tookNode(p, p.On()).Text
	}
	x.Preemption.Refusals.Suspect(r, now)
	x.ToWrite(output.Work{Ref: p.Ref(), Kind: output.WorkInquire, Hold: h})
}

// KubeletRefused counts a loss if a kubelet had no room for a preemptor, and passes the
// losses on to the pod that replaces it.
func (x *Holds) KubeletRefused(uid types.UID, reason string, now time.Time) reasons.Reason {
	r := x.Preemption.Refusals.Answer(uid, reason, &x.Preemption.Options, now)
	if r == nil {
		return reasons.Reason{}
	}
	p := &model.Pod{CachePod: model.CachePod{Pod: &objects.Pod{UID: r.UID, Namespace: r.Namespace, Name: r.Name}}}
	x.EnterStep(p, output.Step{Kind: output.StepLost, Queue: r.Queue, Hold: r.Hold, Reason: r.Losses.Why, Losses: r.Losses.Count}, now)
	if heir := x.Pods[r.Heir()]; heir != nil || r.Controller == "" {
		x.bequeath(r, heir)
	}
	return r.Losses.Why
}

// Inherit passes the losses of a refused pod to a new pod of the same controller, now or
// once the refusal is known.
func (x *Holds) Inherit(p *model.Pod, now time.Time) {
	if r := x.Preemption.Refusals.Replace(p.Pod, now); r != nil {
		x.bequeath(r, p)
	}
}

// bequeath passes the losses of a refused pod to a pod, if that is pending, and forgets
// the refused pod.
func (x *Holds) bequeath(r *preemption.Refusal, heir *model.Pod) {
	x.Preemption.Refusals.Done(r)
	if heir == nil || heir.State.HasNode() || heir.Node != "" {
		return
	}
	heir.Asks.Losses = r.Losses.Inherited()
	if heir.App != nil && heir.RequiredNode == "" {
		x.History.Say(heir, reasons.HoldGivenUp, r.Losses.Until)
	}
}
