package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// The states of a preemptor with a hold:
//
//	          Claim           Commit             the last victim is gone,
//	stuck ───────────► held ───────────► held ─────────────────────► let through
//	  ▲                 │   the executor   │    or the node has room     │
//	  │                 │   checks again   │                             │ Assume, bind
//	  │   endHold       ▼                  ▼                             ▼
//	  └──────────── the plan failed, or the room was taken,            bound: the
//	                or the node is gone, or a time-out                 hold ends
//
// A preemptor with a hold is Unschedulable. Once pods were disrupted for it, the scheduler's
// queueing hints do not move it. The store lets it through when there is room, and
// retries a few times, because the scheduler's cache may learn later than the store that
// the last victim is gone.

// placeHold begins a hold of a pending pod. The chosen pods count as leaving from now on.
func (s *Store) placeHold(p *pod, h reservations.Hold) error {
	h.Asker, h.Namespace, h.Name = p.UID, p.Namespace, p.Name
	h.Request, h.Priority, h.Created, h.Group = p.Request, p.Priority, p.Created, p.group()
	h.Victims = append(s.awaited(&h), s.awaitedOfQueues(p)...)
	if err := s.preemption.Holds.Place(h); err != nil {
		return err
	}
	s.history.noteHold(HoldBegan, &h)
	for _, uid := range h.Chosen {
		s.choose(s.pods[uid], p)
	}
	s.disarm(p)
	p.asks.Missed, p.asks.Began = 0, s.cache.Nodes.Arrivals()
	s.setHolds(p, true)
	s.park(p)
	s.pending.Classes.Leave(&p.equivalenceClass, p.state)
	s.weigh(p)
	s.touchName(h.Node)
	p.reason = preemption.MakingRoom(&h)
	return nil
}

// awaited returns the pods that a preemptor waits for: its victims, and the pods that
// leave its node anyway.
func (s *Store) awaited(h *reservations.Hold) []types.UID {
	var out []types.UID
	if n := s.cache.Nodes.Get(h.Node); n != nil {
		for _, p := range s.podsOn(n) {
			if p.leaves() && !p.lingers(s.preemption.HoldTimeout) {
				out = append(out, p.UID)
			}
		}
	}
	for _, uid := range h.Chosen {
		if v := s.pods[uid]; v != nil && v.On() != nil {
			out = append(out, uid)
		}
	}
	return out
}

// lingers tells whether a deleted pod that is no victim of a plan in force may stay
// longer than a hold lasts. No plan counts on its room.
func (p *pod) lingers(holdTimeout time.Duration) bool {
	return p.Deleting && p.chosenBy == "" && p.DeletionGrace > holdTimeout
}

// ofItsOwn tells whether a leaving pod has the queue, the application or the controller
// of a preemptor, or, if both are of no queue, its namespace. The preemptor's own user
// then causes the pod to leave.
func (p *pod) ofItsOwn(asker *pod) bool {
	switch {
	case p.Controller != "" && p.Controller == asker.Controller:
		return true
	case p.app == nil || asker.app == nil:
		return p.app == asker.app && p.Namespace == asker.Namespace
	}
	return p.app.Leaf == asker.app.Leaf || p.app.Name == asker.app.Name
}

// onlyItsOwn tells whether a preemptor that would fit its node once leaving pods are gone
// waits only for pods of its own (ofItsOwn).
func (s *Store) onlyItsOwn(asker *pod, n *cache.Node) bool {
	own := false
	for _, p := range s.podsOn(n) {
		switch {
		case !p.leaves() || p.lingers(s.preemption.HoldTimeout):
		case p.chosenBy == "" && p.ofItsOwn(asker):
			own = true
		default:
			return false
		}
	}
	return own && len(s.holdersBefore(asker)) == 0
}

// awaitedOfQueues is [cache.Books.Awaited] for a preemptor; none for a pod without a queue.
func (s *Store) awaitedOfQueues(p *pod) []types.UID {
	if p.app == nil {
		return nil
	}
	return s.cache.Books.Awaited(p.app.Leaf, p.Request)
}

// choose marks a pod on a node as a victim of a preemptor.
func (s *Store) choose(v, asker *pod) {
	if v == nil || v.On() == nil {
		return // it is gone already
	}
	s.chosen(v, asker.UID)
	s.weigh(v)
	s.touchPod(v)
}

// touchName notes that a node changed for plans.
func (s *Store) touchName(node string) {
	if n := s.cache.Nodes.Get(node); n != nil {
		s.touch(n)
	}
}

// endHold ends the hold of a pod, if it has one. Victims that were not deleted stay.
func (s *Store) endHold(p *pod, end reservations.End, why reasons.Reason, now time.Time) {
	s.finishHold(p, preemption.Ending{End: end, Node: p.Node, Why: why}, now)
}

func (s *Store) finishHold(p *pod, e preemption.Ending, now time.Time) {
	h, ok := s.preemption.Holds.End(p.UID)
	if !ok {
		return
	}
	losses := 0
	if !s.standby && e.IsLost(&h) { // a standby cannot know what is lost
		e.Why, losses = s.countLoss(p, e.Why, now)
	}
	if e.Node == h.Node && h.Binding() {
		p.asks.Losses.PlacedAt = now
	}
	s.enterStep(p, Step{Kind: StepEnded, Hold: h, Ended: e.End, Node: e.Node, Reason: e.Why, Losses: losses}, now)
	s.history.noteHold(HoldEnded, &h)
	p.asks.Decision, p.asks.Required, p.asks.Ended = nil, nil, h.Since
	s.setHolds(p, false)
	s.preemption.NodeWaits.Remove(p.UID)
	for _, uid := range h.Chosen {
		if v := s.pods[uid]; v != nil && v.chosenBy == p.UID {
			s.spare(v, now)
		}
	}
	s.weigh(p)
	s.touchName(h.Node)
	s.goOnWithoutHold(p)
	s.wakeHolders(h.Node, p.UID, now)
	s.out.vacated = append(s.out.vacated, h.Node)
	if e.Node != h.Node {
		s.lose(pending.LostPod{UID: p.UID, Node: h.Node, Nominated: true, When: now})
	}
	s.retryWithoutHold(p, &h, e.Why, now)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkRelease, Hold: h, Ended: e.End, Reason: e.Why})
}

// retryWithoutHold sets when a pod that lost its hold and still needs a node is tried
// again, and when the next plan for it may be made.
func (s *Store) retryWithoutHold(p *pod, h *reservations.Hold, why reasons.Reason, now time.Time) {
	if p.app == nil && !p.Foreign || p.state.HasNode() {
		return
	}
	if p.state == state.Unschedulable || p.state == state.BackingOff && h.Required {
		p.reason = why
		s.rest(p, now.Add(s.options.backoff(1)))
	}
	from, _ := p.planFrom()
	p.asks.RetryAt = latest(from, now.Add(atMostEvery))
	s.arm(p, p.asks.RetryAt)
}

// goOnWithoutHold: a pod that was admitted for its held node goes on as a pod without a
// hold.
func (s *Store) goOnWithoutHold(p *pod) {
	if !p.state.HasSlot() || !p.Charged(cache.Admitted).IsZero() {
		return
	}
	s.charge(p, p.Amount(), p.In()|cache.Admitted)
	if p.mates != nil {
		s.pending.Groups.Touch(p.mates) // from now on it starts only with its group
	}
}

// spare: a chosen pod that was not deleted stays, and no preemptor waits for it.
func (s *Store) spare(v *pod, now time.Time) {
	s.chosen(v, "")
	s.weigh(v)
	s.touchPod(v)
	if !v.leaves() {
		s.gone(v.UID, now)
	}
}

// endNode ends all holds of a node.
func (s *Store) endNode(node string, end reservations.End, now time.Time) {
	for _, h := range s.preemption.Holds.Holders(node) {
		code := reasons.HoldNodeGone
		if end == reservations.NodeUnschedulable {
			code = reasons.HoldNodeUnschedulable
		}
		if p := s.pods[h.Asker]; p != nil {
			s.endHold(p, end, reasons.New(code, "node %s is held for the pod no more", node), now)
		}
	}
}

// NodeRefuses says that the filters refuse the node that a pod holds, whichever pods
// leave it. The hold ends, and the pod is treated as one that found no node.
func (s *Store) NodeRefuses(uid types.UID, node, why string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	p := s.pods[uid]
	if h, ok := s.preemption.Holds.Of(uid); ok && p != nil && h.Node == node && !h.Required {
		s.endHold(p, reservations.NodeUnschedulable, reasons.New(reasons.HoldNodeUnschedulable, "node %s cannot take the pod any more: %s", node, why), now)
	}
}

// gone tells the ledger that a pod is no longer waited for, and lets the preemptors
// through that waited for it and have room now.
func (s *Store) gone(uid types.UID, now time.Time) {
	for _, asker := range s.preemption.Holds.VictimGone(uid, now) {
		if p := s.pods[asker]; p != nil {
			s.wakeHolder(p, now)
		}
	}
}

// wakeHolders calls wakeHolder for the holders of a node except one.
func (s *Store) wakeHolders(node string, except types.UID, now time.Time) {
	for _, h := range s.preemption.Holds.Holders(node) {
		if p := s.pods[h.Asker]; p != nil && h.Asker != except {
			s.wakeHolder(p, now)
		}
	}
}

// wakeHolder lets a preemptor with a hold through if all awaited pods are gone, or if it
// has room already and no other member of its PodGroup may need that room.
func (s *Store) wakeHolder(p *pod, now time.Time) {
	h, ok := s.preemption.Holds.Of(p.UID)
	matesFirst := p.apart() && p.mates.Placed()+1 < p.mates.Min()
	if !ok || p.state.HasSlot() || p.state.HasNode() || s.behind(p, &h) || !h.Clear() && (matesFirst || !s.hasRoom(p, &h)) {
		return
	}
	if p.state == state.BackingOff && p.erred && p.notUntil.After(now) {
		return // it had room: a step after the choice of the node failed
	}
	s.letThrough(p, now)
}

// behind tells whether a pod that can run only on this node is before a preemptor that
// holds the node. The preemptor then waits for it, regardless of free room.
func (s *Store) behind(p *pod, h *reservations.Hold) bool {
	for _, before := range s.preemption.Holds.Holders(h.Node) {
		if before.Asker == p.UID {
			return false
		}
		if before.Required && !s.isPlaced(before.Asker) {
			return true
		}
	}
	return false
}

// hasRoom tells whether a preemptor fits its node by amounts, beside the holders before
// it, and within every max, while leaving pods still count.
func (s *Store) hasRoom(p *pod, h *reservations.Hold) bool {
	n := s.cache.Nodes.Get(h.Node)
	if n == nil {
		return false
	}
	room := n.Room()
	for _, before := range s.preemption.Holds.Holders(h.Node) {
		if before.Asker == p.UID {
			break
		}
		if !s.isPlaced(before.Asker) {
			room = room.Sub(before.Request)
		}
	}
	return room.Covers(p.Request) && (p.app == nil || s.cache.Books.CheckQuota(&p.app.cacheApp, p.Request, queues.OnAllocated).OK())
}

// bindingHold tells whether a pod is bound to its held node, so that events on other
// nodes do not help it.
func (s *Store) bindingHold(p *pod) bool {
	if !p.asks.Holds() {
		return false
	}
	h, _ := s.preemption.Holds.Of(p.UID)
	return len(h.Chosen) > 0 && (!h.Clear() || p.asks.IsTried())
}

// taken returns which pods took the room that was made for a preemptor: pods on its node,
// or in a queue at its max. It is none if the room is there, or if an awaited pod is not
// gone yet.
func (s *Store) taken(p *pod, h *reservations.Hold) reasons.Reason {
	n := s.cache.Nodes.Get(h.Node)
	if n == nil || !h.Clear() {
		return reasons.Reason{}
	}
	if !s.free(n, p.UID).Covers(p.Request) {
		return s.tookNode(p, n)
	}
	if v := queues.Admit(s.cache.Tree(), p.app.Leaf, p.Request, queues.OnAllocated); !v.OK() {
		return s.tookQueue(p, v.At)
	}
	return reasons.Reason{}
}

// failedHolder handles a failed cycle of a preemptor with a hold. It is tried again soon
// if all awaited pods are gone.
func (s *Store) failedHolder(p *pod, now time.Time) {
	if !p.state.HasSlot() {
		return // already handled
	}
	s.withdraw(p)
	s.pending.Keys.Remove(p.UID)
	s.enter(p, state.Unschedulable)
	p.erred, p.notUntil = false, now.Add(s.options.backoff(1))
	h, _ := s.preemption.Holds.Of(p.UID)
	p.reason = preemption.MakingRoom(&h)
	if !h.Clear() {
		return
	}
	s.cool(p, s.nextTry(p, &h, now))
}

// nextTry counts a failed cycle of a preemptor whose hold is clear: the scheduler may not
// know yet that all victims are gone. It returns when the preemptor is tried again.
func (s *Store) nextTry(p *pod, h *reservations.Hold, now time.Time) time.Time {
	wait, last := p.asks.Miss(s.preemption.RetryInterval)
	if last {
		s.toWrite(Work{Ref: p.Ref(), Kind: WorkRecord, Hold: *h})
	}
	return now.Add(wait)
}
