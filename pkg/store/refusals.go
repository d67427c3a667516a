package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// suspectRefusal asks the executor how a pod that is gone has ended; see
// [preemption.Refusals].
func (s *Store) suspectRefusal(p *pod, now time.Time) {
	h, holds := s.preemption.Holds.Of(p.UID)
	placed := p.asks.PlacedAt()
	if holds && h.Binding() && p.Node == h.Node {
		placed = now
	}
	if s.standby || p.Deleting || !preemption.MayBeRefused(placed, now) {
		return
	}
	if !holds {
		h = reservations.Hold{Asker: p.UID, Namespace: p.Namespace, Name: p.Name, Node: p.Node, Required: p.RequiredNode != ""}
	}
	r := preemption.Refusal{
		Ref: p.Ref(), Controller: p.Controller, OnlyNode: p.RequiredNode, Hold: h, Queue: p.queue(s.cache.Tree()), Losses: p.asks.Losses,
	}
	if p.On() != nil {
		r.Took = s.tookNode(p, p.On()).Text
	}
	s.preemption.Refusals.Suspect(r, now)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkInquire, Hold: h})
}

// KubeletRefused reports how a pod ended: with the reason for which the kubelet had no
// room for it, such as OutOfcpu, or in another way if the reason is empty. It returns the
// reason given to users if this is a loss.
func (s *Store) KubeletRefused(uid types.UID, reason string, now time.Time) reasons.Reason {
	s.mu.Lock()
	defer s.unlock(now)
	r := s.preemption.Refusals.Answer(uid, reason, &s.preemption.Options, now)
	if r == nil {
		return reasons.Reason{}
	}
	p := &pod{cachePod: cachePod{Pod: &objects.Pod{UID: r.UID, Namespace: r.Namespace, Name: r.Name}}}
	s.enterStep(p, Step{Kind: StepLost, Queue: r.Queue, Hold: r.Hold, Reason: r.Losses.Why, Losses: r.Losses.Count}, now)
	if heir := s.pods[r.Heir()]; heir != nil || r.Controller == "" {
		s.bequeath(r, heir)
	}
	return r.Losses.Why
}

// inherit passes the losses of a refused pod to a new pod of the same controller, now or
// once the refusal is known.
func (s *Store) inherit(p *pod, now time.Time) {
	if r := s.preemption.Refusals.Replace(p.Pod, now); r != nil {
		s.bequeath(r, p)
	}
}

// bequeath passes the losses of a refused pod to a pod, if that is pending, and forgets
// the refused pod.
func (s *Store) bequeath(r *preemption.Refusal, heir *pod) {
	s.preemption.Refusals.Done(r)
	if heir == nil || heir.state.HasNode() || heir.Node != "" {
		return
	}
	heir.asks.Losses = r.Losses.Inherited()
	if heir.app != nil && heir.RequiredNode == "" {
		s.history.say(heir, reasons.HoldGivenUp, r.Losses.Until)
	}
}
