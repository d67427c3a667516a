package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// turn is the state that a pod needs until it runs. A pod of a queue has its own until
// then; a foreign pod has its own while it has no node.
type turn struct {
	ask     *order.Ask // set while Queued
	laneAsk *order.Ask // set while the pod is in a lane; it is BackingOff or Unschedulable then

	// assumedRequest is its request when it was let through, if the request became smaller
	// since: a running cycle may have begun with the larger one. Nil for most.
	assumedRequest *resources.Vector

	equivalenceClass *pending.Class // its equivalence class; set once it found no node
	hopes            uint64         // ClassLimit.Reopened when it was admitted
	sees             uint64         // Nodes.Generation when it was last passed to the scheduler's queue
	gaveWay          int            // how often it left room to pods whose events are not seen yet
	reason           reasons.Reason // why it has no queue, or is unschedulable
	within           bool           // it is part of the demand; see demand.go
	beyond           reasons.Reason // the quota that keeps it out of the demand
	erred            bool           // its cycle ended with an error
	notUntil         time.Time      // end of its back-off
	treeGen          uint64         // generation of the queue tree it was assumed on
	late             *objects.Pod   // the latest event while it is assumed
	tallied          history.Tally  // its contribution to the counts

	timer pending.Timer[*pod] // the end of its lease or back-off
}

// newTurn returns the turn of a pod; the shared one is of nil.
func newTurn(p *pod) *turn {
	t := &turn{}
	if p == nil {
		t.timer = pending.NewTimer(p, "")
	} else {
		t.timer = pending.NewTimer(p, p.UID)
	}
	return t
}

// over tells whether a running pod no longer needs its own turn.
func (t *turn) over() bool {
	waits := t.ask != nil || t.laneAsk != nil || t.equivalenceClass != nil || t.timer.IsSet()
	return !waits && t.assumedRequest == nil && t.late == nil && !t.tallied.In
}

// chosen marks a pod as a victim of a preemptor, or of none if asker is empty.
func (s *Store) chosen(p *pod, asker types.UID) {
	if p.chosenBy != asker {
		s.recounted(p, func() { p.chosenBy = asker })
	}
}

// ownAsks gives a pod its own asks (preemptor state) if it has none.
func (p *pod) ownAsks() {
	if p.asks == nil {
		p.asks = preemption.NewAsker(p.UID)
	}
}

// atWork drops the state that only pods that do not run need.
func (s *Store) atWork(p *pod, now time.Time) {
	if p.report != nil && s.history.reports.Settle(p.report, now) {
		p.report = nil
	}
	if p.asks != nil && p.asks.IsEmpty() {
		p.asks = nil
	}
	if p.turn.over() {
		p.turn = s.noTurn
	}
}

// checkShares verifies that a pod has its own values where it needs them.
func (s *Store) checkShares(p *pod) error {
	switch runs := p.state == state.Bound; {
	case p.asks == nil && p.Node == "":
		return errors.New("waits, and has no record of a preemptor")
	case p.turn == s.noTurn && !runs:
		return errors.New("does not run, and shares its turn with pods that do")
	case runs && p.turn != s.noTurn && p.turn.over():
		return errors.New("runs, and keeps a turn of its own for nothing")
	case p.tallied != tallyOf(p):
		return fmt.Errorf("is counted as %+v, and is %+v", p.tallied, tallyOf(p))
	}
	return nil
}
