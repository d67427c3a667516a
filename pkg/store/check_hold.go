package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// checkForeign is checkPod for a pod of no queue.
func (s *core) checkForeign(p *model.Pod) error {
	if _, held := s.model.Preemption.Ledger.Of(p.UID); held != p.Asker.HoldsNode() {
		return fmt.Errorf("holds a node: %v, by the ledger: %v", p.Asker.HoldsNode(), held)
	}
	switch {
	case p.App != nil:
		return errors.New("is foreign and belongs to a queue")
	case p.State != state.Bound && p.State != state.Unschedulable && p.State != state.BackingOff:
		return errors.New("is foreign, but is in a state that only pods of queues have")
	case (p.State == state.Bound) != (p.On() != nil):
		return fmt.Errorf("is foreign and on a node: %v", p.On() != nil)
	case p.State != state.Bound && !model.MayAskForeign(p.Pod) && p.Claim == nil:
		return errors.New("is foreign, has no node, may not ask, and has no claim")
	case (p.State == state.BackingOff || s.leavesInTime(p)) != (p.Timer.IsSet()):
		return fmt.Errorf("has a deadline: %v", p.Timer.IsSet())
	}
	return nil
}

// checkAskers verifies that the askers which watch something exist and need a node, that
// those which wait for a quota hold a node, and that no pod keeps room by D0 that may not be tried.
func (s *core) checkAskers() []error {
	var errs []error
	for uid := range s.model.Preemption.NodeBound.All() {
		switch p := s.model.Pods[uid]; {
		case p == nil:
			errs = append(errs, fmt.Errorf("node-bound pods: %s is gone", uid))
		case s.model.Preemption.NodeBound.Counts(uid) && !s.mayGoFirst(p):
			errs = append(errs, fmt.Errorf("node-bound pods: %s keeps room on its node and may not be tried", uid))
		}
	}
	for p := range s.model.Pending.BlockedHolders.All() {
		if s.model.Pods[p.UID] != p || !p.Asker.HoldsNode() {
			errs = append(errs, fmt.Errorf("refused holders: pod %s holds no node", p.UID))
		}
	}
	for uid := range s.model.Preemption.Undeletable.All() {
		if s.model.Pods[uid] == nil {
			errs = append(errs, fmt.Errorf("undeletable pods: %s is gone", uid))
		}
	}
	for uid := range s.model.Preemption.Watches.All() {
		if p := s.model.Pods[uid]; p == nil || p.State.HasNode() {
			errs = append(errs, fmt.Errorf("watches: pod %s is gone or has a node", uid))
		}
	}
	return append(errs, s.checkWaiting()...)
}

// checkWaiting verifies that the askers which wait for room need a node.
func (s *core) checkWaiting() (errs []error) {
	for uid, waiting := range s.model.Preemption.Waiting {
		if p := s.model.Pods[uid]; p == nil || p.App == nil || p.State.HasNode() || p.Asker.HoldsNode() {
			errs = append(errs, fmt.Errorf("askers: pod %s waits for room of node %s and needs none", uid, waiting.Node))
		}
	}
	return errs
}

// mayGoFirst tells whether a pod is in a state in which it may keep room by D0. Until the
// window is filled, the verdict on its group may be out of date.
func (s *core) mayGoFirst(p *model.Pod) bool {
	switch p.State {
	case state.NoQueue, state.GroupBlocked, state.Assumed, state.Bound:
		return false
	case state.Queued:
		return p.HeldByClass() || p.Ask.Group().Verdict().OK() || s.model.Pending.IsFillDue()
	case state.Admitted, state.Scheduling:
		return true
	}
	return p.Foreign || !p.OnlyTimeHelps
}

// checkAsker verifies the asker state of a pod.
func (s *core) checkAsker(p *model.Pod) error {
	h, held := s.model.Preemption.Ledger.Of(p.UID)
	inQueue := s.model.PreemptionQueue.Waits(p.Asker)
	switch {
	case p.Asker.HoldsNode() && !held:
		return errors.New("holds a node that the ledger does not know of")
	case held && !p.Asker.HoldsNode():
		return fmt.Errorf("holds node %s and does not know it", h.Node)
	case held && s.model.Preemption.Ledger.Placed(p.UID) != (p.State == state.Assumed):
		return fmt.Errorf("is %s, by the ledger placed: %v", p.State, p.State != state.Assumed)
	case inQueue && (p.State.HasNode() || p.Asker.HoldsNode() || p.App == nil):
		return errors.New("is due for a plan and needs none")
	case !s.states.IsArmed(p) && s.needsToAsk(p):
		return errors.New("is stuck and will not be looked at")
	case s.model.PreemptionQueue.Current() == p.UID && !p.State.HasSlot():
		return errors.New("has a plan under way and was not let through")
	case held && !h.NodeBound && s.mayBePlaced(p, &h):
		return fmt.Errorf("may be placed on node %s, which it holds, and is not tried", h.Node)
	}
	return nil
}

// mayBePlaced tells whether an asker that waits for its victims needs none of them any
// more, by amounts, and no event is due that brings it back.
func (s *core) mayBePlaced(p *model.Pod, h *reservations.Hold) bool {
	idle := s.model.Started && !s.model.Pending.IsFillDue()
	return idle && p.State == state.Unschedulable && h.OnlyThisNode() && len(p.Asker.ByFilters) == 0 && s.holds.Ready(p, h)
}

// needsToAsk tells whether a pod must be due for a plan or watch queues.
func (s *core) needsToAsk(p *model.Pod) bool {
	switch p.State {
	case state.Queued, state.GroupBlocked, state.Unschedulable, state.BackingOff:
		return s.plans.Never(p).None() && !p.Asker.HoldsNode() && p.RequiredNode == ""
	}
	return false
}

// checkHolds verifies that holds and chosen victims have askers.
func (s *core) checkHolds() []error {
	var errs []error
	for _, h := range s.model.Preemption.Ledger.Ledger.View().All() {
		if p := s.model.Pods[h.Asker]; p == nil {
			errs = append(errs, fmt.Errorf("node %s: is held for %s, which is gone", h.Node, h.Asker))
		} else if p.App == nil && !p.Foreign {
			errs = append(errs, fmt.Errorf("node %s: is held for %s, which has no queue", h.Node, h.Asker))
		} else if _, why := s.model.Cache.Nodes.Unusable(h.Node); !why.None() {
			errs = append(errs, fmt.Errorf("node %s: is held for %s: %s", h.Node, h.Asker, why.Text))
		}
	}
	for _, p := range s.model.SortedPods() {
		if p.ChosenBy == "" {
			continue
		}
		if h, ok := s.model.Preemption.Ledger.Of(p.ChosenBy); !ok || !slices.Contains(h.Chosen, p.UID) {
			errs = append(errs, fmt.Errorf("pod %s/%s: is a victim of %s, which has no hold with it", p.Namespace, p.Name, p.ChosenBy))
		}
		if p.On() == nil {
			errs = append(errs, fmt.Errorf("pod %s/%s: is a victim of %s, but has no node", p.Namespace, p.Name, p.ChosenBy))
		}
	}
	return append(append(errs, s.checkAskers()...), s.model.PreemptionQueue.Check())
}

// leavesInTime tells whether a deleted pod on a node still counts as leaving, and for a time.
func (s *core) leavesInTime(p *model.Pod) bool {
	_, leaves := p.LeavesUntil(&s.model.Preemption.Options)
	return leaves
}
