package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

func (s *Store) checkForeign(p *pod) error {
	if _, held := s.preemption.Holds.Of(p.UID); held != p.asks.holds {
		return fmt.Errorf("holds a node: %v, by the ledger: %v", p.asks.holds, held)
	}
	switch {
	case p.app != nil:
		return errors.New("is foreign and belongs to a queue")
	case p.state != bound && p.state != parked && p.state != cooling:
		return errors.New("is foreign and on the way of pods of queues")
	case (p.state == bound) != (p.on != nil):
		return fmt.Errorf("is foreign and on a node: %v", p.on != nil)
	case p.state != bound && !mayAskForeign(p.Pod):
		return errors.New("is foreign, has no node, and may not ask")
	case (p.state == cooling) != (p.timer.IsSet()):
		return fmt.Errorf("has a deadline: %v", p.timer.IsSet())
	}
	return checkHolder(p)
}

// checkHolder verifies the hold state of a pod that requires a node.
func checkHolder(p *pod) error {
	n := p.asks.awaits
	switch {
	case n != nil && n.askers[p.UID] != p:
		return errors.New("is not told of changes of its node")
	case n != nil && p.state.allocated():
		return errors.New("awaits a change of its node and has a node")
	}
	return nil
}

// checkNodes verifies that nodes have their pods and the sum of what those use.
func (s *Store) checkNodes() []error {
	var errs []error
	on := 0
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[name]
		var used resources.Vector
		for _, p := range n.sortedPods() {
			used = used.Add(p.uses)
			if p.on != n || s.pods[p.UID] != p || !n.has(p) {
				errs = append(errs, fmt.Errorf("node %s: pod %s/%s is not there", name, p.Namespace, p.Name))
			}
		}
		on += len(n.pods)
		errs = append(errs, s.checkAskers(n)...)
		if !used.Equal(n.used) {
			errs = append(errs, fmt.Errorf("node %s: books say %v is used, its pods use %v", name, n.used, used))
		}
	}
	for _, p := range s.pods {
		if p.on != nil {
			on--
		}
	}
	if on != 0 {
		errs = append(errs, fmt.Errorf("nodes: %d pods more than have a node", on))
	}
	return errs
}

// checkAskers verifies that the preemptors registered for a node's changes still wait for
// that node.
func (s *Store) checkAskers(n *node) []error {
	var errs []error
	for _, p := range sortedByUID(n.askers) {
		if p.asks.awaits != n || s.pods[p.UID] != p {
			errs = append(errs, fmt.Errorf("node %s: pod %s/%s does not ask for it any more", n.name, p.Namespace, p.Name))
		}
	}
	return errs
}

// checkAsks verifies the preemptor state of a pod.
func (s *Store) checkAsks(p *pod) error {
	h, held := s.preemption.Holds.Of(p.UID)
	due := p.asks.due.at != ranking.Outside
	switch {
	case p.asks.holds && !held:
		return errors.New("holds a node that the ledger does not know of")
	case held && !p.asks.holds:
		return fmt.Errorf("holds node %s and does not know it", h.Node)
	case due && p.asks.ask != nil:
		return errors.New("is due for a plan, and in the order of those that are")
	case (due || p.asks.ask != nil) && (p.state.allocated() || p.asks.holds || p.app == nil):
		return errors.New("is due for a plan and needs none")
	case !s.willAsk(p) && s.needsToAsk(p):
		return errors.New("is stuck and will not be looked at")
	case s.asking.current == p && p.state != admitted:
		return errors.New("has a plan under way and was not let through")
	}
	return checkHolder(p)
}

// needsToAsk tells whether a pod must be due for a plan or watch queues.
func (s *Store) needsToAsk(p *pod) bool {
	switch p.state {
	case waiting, parked, cooling:
		return s.spec.PreemptionEnabled && !p.NeverPreempts && p.Uncounted.IsZero() && !p.asks.holds && p.RequiredNode == ""
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
		if p.on == nil {
			errs = append(errs, fmt.Errorf("pod %s/%s: is to go for %s, and is on no node", p.Namespace, p.Name, p.chosenBy))
		}
	}
	if err := s.asking.due.Check(); err != nil {
		errs = append(errs, fmt.Errorf("plans that are due: %w", err))
	}
	return append(errs, s.asking.order.index.Check())
}
