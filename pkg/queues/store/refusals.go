package store

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// A kubelet refuses a pod for which its node has no room (OutOfcpu, OutOfmemory, ...): another
// scheduler bound a pod there at the same time. Where room had been made for the refused pod,
// that is a lost hold too, though it ended with a bind. The refused pod is over, so the pod
// that its controller makes in its place has the loss, and the count of losses before it.
//
// The scheduler's informer has no pods that failed: it tells of a refused pod that it is gone.
// So the executor looks how a pod ended that is gone within refusalTime of its bind:
//
//	gone ──► remembered, WorkInquire ──► KubeletRefused ──► the loss is that of the next pod of
//	             │        │                    │            the controller, come or to come
//	             │        └ not refused        └─────────────────────────────────► forgotten,
//	             └ no answer                                                       as soon as it
//	                                                                               has it, or the
//	                                                                               pause is over
//
// What is remembered is bounded: of more than mostRefusals the oldest is forgotten.
const (
	mostRefusals = 1000
	// refusalTime is within what time of its bind a kubelet refuses a pod, and the executor
	// answers.
	refusalTime = time.Minute
)

// refusalKey names the pods of which one takes the place of another: those of a controller,
// and of a DaemonSet those for one node.
type refusalKey struct {
	controller types.UID
	node       string
}

// refusal is a pod that ended soon after it was bound to the node that was held for it.
type refusal struct {
	Ref
	key     refusalKey
	hold    reservations.Hold
	queue   string // the path of its leaf; empty for none
	took    string // what other pods did meanwhile
	losses  losses
	refused bool      // the kubelet refused it; otherwise that is not known yet
	until   time.Time // it is forgotten then
	heir    types.UID // the pod in its place; empty while there is none
}

// suspectRefusal has the executor look how a pod ended that is gone.
func (s *Store) suspectRefusal(p *pod, now time.Time) {
	h, holds := s.holds.Of(p.UID)
	placed := p.asks.losses.placedAt
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
		losses: p.asks.losses, until: now.Add(refusalTime),
	}
	if p.on != nil {
		r.took = s.tookNode(p, p.on).Text
	}
	s.refusals = append(s.refusals, r)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkInquire, Hold: h})
}

func (s *Store) forgetRefusals(now time.Time) {
	s.refusals = slices.DeleteFunc(s.refusals, func(r *refusal) bool { return !now.Before(r.until) })
}

// KubeletRefused tells how a pod ended: with the reason for which the kubelet of its node had
// no room for it, such as OutOfcpu, or in another way, which is empty. It returns what people
// are told, if that is a loss.
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
	r.losses.count++
	pause := s.pause(r.losses.count)
	why := reasons.New(reasons.HoldSuperseded, "%s; the kubelet has no room for pod %s/%s (%s)", r.took, r.Namespace, r.Name, reason)
	r.losses.set(why, "the pod that is made in its place", pause, now)
	r.until = r.losses.until
	p := &pod{Pod: &Pod{UID: r.UID, Namespace: r.Namespace, Name: r.Name}}
	s.enterStep(p, Step{Kind: StepLost, Queue: r.queue, Hold: r.hold, Reason: r.losses.why, Losses: r.losses.count}, now)
	if heir := s.pods[r.heir]; heir != nil || r.key.controller == "" {
		s.bequeath(r, heir)
		s.refusals = slices.Delete(s.refusals, i, i+1)
	}
	return r.losses.why
}

// inherit gives a new pod the losses of a pod of its controller that was refused, now or as
// soon as that is known.
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

// bequeath gives a pod, if there is one that waits, the losses of a refused one.
func (s *Store) bequeath(r *refusal, heir *pod) {
	if heir == nil || heir.state.allocated() || heir.Node != "" {
		return
	}
	heir.asks.losses = losses{count: r.losses.count, until: r.losses.until, why: r.losses.why}
	if heir.app != nil && heir.RequiredNode == "" {
		s.sayUntil(heir, reasons.HoldGivenUp, r.losses.until)
	}
}

// checkRefusals verifies that what is remembered is bounded, and of use.
func (s *Store) checkRefusals() error {
	if len(s.refusals) > mostRefusals {
		return fmt.Errorf("refusals: %d, at most %d are remembered", len(s.refusals), mostRefusals)
	}
	for _, r := range s.refusals {
		if r.UID == "" || r.until.IsZero() || r.refused && (r.key.controller == "" || r.losses.count < 1) {
			return errors.New("refusals: one is remembered for nothing")
		}
	}
	return nil
}
