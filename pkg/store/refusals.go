package store

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// A kubelet refuses a pod if its node has no room for it (OutOfcpu, OutOfmemory, ...),
// because another scheduler bound a pod there at the same time. If room had been made for
// the refused pod, this is a lost hold, too, although it ended with a bind. The refused
// pod is over, so the loss, with the count of earlier losses, passes to the pod that its
// controller creates to replace it.
//
// The scheduler's informer does not have failed pods and reports a refused pod as
// deleted. So if a pod is gone within refusalTime of its bind, the executor checks how it
// ended:
//
//	gone ──► remembered, WorkInquire ──► KubeletRefused ──► the loss passes to the next pod of
//	             │        │                    │            the controller, present or future
//	             │        └ not refused        └─────────────────────────────────► forgotten,
//	             └ no answer                                                       when passed on,
//	                                                                               or when the
//	                                                                               pause ends
//
// At most mostRefusals are remembered; beyond that the oldest is forgotten.
const (
	mostRefusals = 1000
	// refusalTime bounds the time from the bind of a pod to its refusal by the kubelet,
	// and the time for the executor's answer.
	refusalTime = time.Minute
)

// refusalKey identifies the pods that replace each other: those of a controller, and for
// a DaemonSet those of one node.
type refusalKey struct {
	controller types.UID
	node       string
}

// refusal is a pod that ended soon after it was bound to the node that was held for it.
type refusal struct {
	objects.Ref
	key     refusalKey
	hold    reservations.Hold
	queue   string // path of its leaf; empty for none
	took    string // which pods took the room meanwhile
	losses  preemption.Losses
	refused bool      // the kubelet refused it; false while that is unknown
	until   time.Time // it is forgotten at this time
	heir    types.UID // the pod that replaces it; empty while there is none
}

// suspectRefusal asks the executor how a pod that is gone has ended.
func (s *Store) suspectRefusal(p *pod, now time.Time) {
	h, holds := s.preemption.Holds.Of(p.UID)
	placed := p.asks.PlacedAt()
	if holds && h.Binding() && p.Node == h.Node {
		placed = now
	}
	if s.standby || p.Deleting || placed.IsZero() || now.Sub(placed) > refusalTime {
		return
	}
	if !holds {
		h = reservations.Hold{Asker: p.UID, Namespace: p.Namespace, Name: p.Name, Node: p.Node, Required: p.RequiredNode != ""}
	}
	s.forgetRefusals(now)
	if len(s.refusals) == mostRefusals {
		s.refusals = s.refusals[1:]
	}
	r := &refusal{
		Ref: p.Ref(), key: refusalKey{p.Controller, p.RequiredNode}, hold: h, queue: s.queueOf(p),
		losses: p.asks.Losses, until: now.Add(refusalTime),
	}
	if p.On() != nil {
		r.took = s.tookNode(p, p.On()).Text
	}
	s.refusals = append(s.refusals, r)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkInquire, Hold: h})
}

func (s *Store) forgetRefusals(now time.Time) {
	s.refusals = slices.DeleteFunc(s.refusals, func(r *refusal) bool { return !now.Before(r.until) })
}

// KubeletRefused reports how a pod ended: with the reason for which the kubelet had no
// room for it, such as OutOfcpu, or in another way if the reason is empty. It returns the
// reason given to users if this is a loss.
func (s *Store) KubeletRefused(uid types.UID, reason string, now time.Time) reasons.Reason {
	s.mu.Lock()
	defer s.unlock(now)
	i := slices.IndexFunc(s.refusals, func(r *refusal) bool { return r.UID == uid && !r.refused })
	if i < 0 {
		return reasons.Reason{}
	}
	r := s.refusals[i]
	if reason == "" {
		s.refusals = slices.Delete(s.refusals, i, i+1)
		return reasons.Reason{}
	}
	r.refused = true
	why := reasons.New(reasons.HoldSuperseded, "%s; the kubelet has no room for pod %s/%s (%s)", r.took, r.Namespace, r.Name, reason)
	r.losses.LoseAgain(why, "the pod that is made in its place", &s.preemption.Options, now)
	r.until = r.losses.Until
	p := &pod{cachePod: cachePod{Pod: &objects.Pod{UID: r.UID, Namespace: r.Namespace, Name: r.Name}}}
	s.enterStep(p, Step{Kind: StepLost, Queue: r.queue, Hold: r.hold, Reason: r.losses.Why, Losses: r.losses.Count}, now)
	if heir := s.pods[r.heir]; heir != nil || r.key.controller == "" {
		s.bequeath(r, heir)
		s.refusals = slices.Delete(s.refusals, i, i+1)
	}
	return r.losses.Why
}

// inherit passes the losses of a refused pod to a new pod of the same controller, now or
// once the refusal is known.
func (s *Store) inherit(p *pod, now time.Time) {
	if len(s.refusals) == 0 || p.Controller == "" || p.Node != "" {
		return
	}
	s.forgetRefusals(now)
	key := refusalKey{p.Controller, p.RequiredNode}
	i := slices.IndexFunc(s.refusals, func(r *refusal) bool { return r.key == key && r.heir == "" })
	if i < 0 {
		return
	}
	r := s.refusals[i]
	if r.heir = p.UID; r.refused {
		s.bequeath(r, p)
		s.refusals = slices.Delete(s.refusals, i, i+1)
	}
}

// bequeath passes the losses of a refused pod to a pod, if that is pending.
func (s *Store) bequeath(r *refusal, heir *pod) {
	if heir == nil || heir.state.HasNode() || heir.Node != "" {
		return
	}
	heir.asks.Losses = r.losses.Inherited()
	if heir.app != nil && heir.RequiredNode == "" {
		s.sayUntil(heir, reasons.HoldGivenUp, r.losses.Until)
	}
}

// checkRefusals verifies that refusals are bounded and still needed.
func (s *Store) checkRefusals() error {
	if len(s.refusals) > mostRefusals {
		return fmt.Errorf("refusals: %d, at most %d are remembered", len(s.refusals), mostRefusals)
	}
	for _, r := range s.refusals {
		if r.UID == "" || r.until.IsZero() || r.refused && (r.key.controller == "" || r.losses.Count < 1) {
			return errors.New("refusals: one is remembered for nothing")
		}
	}
	return nil
}
