package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

func (s *Store) checkForeign(p *pod) error {
	if _, held := s.preemption.Holds.Of(p.UID); held != p.asks.Holds() {
		return fmt.Errorf("holds a node: %v, by the ledger: %v", p.asks.Holds(), held)
	}
	switch {
	case p.app != nil:
		return errors.New("is foreign and belongs to a queue")
	case p.state != state.Bound && p.state != state.Unschedulable && p.state != state.BackingOff:
		return errors.New("is foreign and on the way of pods of queues")
	case (p.state == state.Bound) != (p.On() != nil):
		return fmt.Errorf("is foreign and on a node: %v", p.On() != nil)
	case p.state != state.Bound && !mayAskForeign(p.Pod):
		return errors.New("is foreign, has no node, and may not ask")
	case (p.state == state.BackingOff) != (p.timer.IsSet()):
		return fmt.Errorf("has a deadline: %v", p.timer.IsSet())
	}
	return s.checkHolder(p)
}

// checkHolder verifies the hold state of a pod that requires a node.
func (s *Store) checkHolder(p *pod) error {
	if s.preemption.NodeWaits.Of(p.UID) != "" && p.state.HasNode() {
		return errors.New("awaits a change of its node and has a node")
	}
	return nil
}

// checkPreemptors verifies that the preemptors which watch or await something exist.
func (s *Store) checkPreemptors() []error {
	var errs []error
	for uid, node := range s.preemption.NodeWaits.All() {
		if s.pods[uid] == nil {
			errs = append(errs, fmt.Errorf("node %s: preemptor %s does not wait for it", node, uid))
		}
	}
	for uid := range s.preemption.Watches.All() {
		if s.pods[uid] == nil {
			errs = append(errs, fmt.Errorf("watches: pod %s is gone", uid))
		}
	}
	return errs
}

// checkAsks verifies the preemptor state of a pod.
func (s *Store) checkAsks(p *pod) error {
	h, held := s.preemption.Holds.Of(p.UID)
	inQueue := s.asking.Waits(p.asks)
	switch {
	case p.asks.Holds() && !held:
		return errors.New("holds a node that the ledger does not know of")
	case held && !p.asks.Holds():
		return fmt.Errorf("holds node %s and does not know it", h.Node)
	case inQueue && (p.state.HasNode() || p.asks.Holds() || p.app == nil):
		return errors.New("is due for a plan and needs none")
	case !s.willAsk(p) && s.needsToAsk(p):
		return errors.New("is stuck and will not be looked at")
	case s.asking.Current() == p.UID && !p.state.HasSlot():
		return errors.New("has a plan under way and was not let through")
	}
	return s.checkHolder(p)
}

// needsToAsk tells whether a pod must be due for a plan or watch queues.
func (s *Store) needsToAsk(p *pod) bool {
	switch p.state {
	case state.Queued, state.GroupBlocked, state.Unschedulable, state.BackingOff:
		return s.cache.Spec.PreemptionEnabled && !p.NeverPreempts && p.Uncounted.IsZero() && !p.asks.Holds() && p.RequiredNode == ""
	}
	return false
}

// checkHolds verifies the ledger, and that every chosen victim has a preemptor.
func (s *Store) checkHolds() []error {
	var errs []error
	if err := s.preemption.Holds.Check(); err != nil {
		errs = append(errs, fmt.Errorf("holds: %w", err))
	}
	for _, p := range s.sortedPods() {
		if p.chosenBy == "" {
			continue
		}
		if h, ok := s.preemption.Holds.Of(p.chosenBy); !ok || !slices.Contains(h.Chosen, p.UID) {
			errs = append(errs, fmt.Errorf("pod %s/%s: is to go for %s, which holds nothing for it", p.Namespace, p.Name, p.chosenBy))
		}
		if p.On() == nil {
			errs = append(errs, fmt.Errorf("pod %s/%s: is to go for %s, and is on no node", p.Namespace, p.Name, p.chosenBy))
		}
	}
	return append(append(errs, s.checkPreemptors()...), s.asking.Check())
}
