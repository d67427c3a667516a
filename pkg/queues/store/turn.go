package store

import (
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// turn is what a pod needs until it runs. A pod of a queue has its own until then, and
// one of another scheduler while it has no node.
type turn struct {
	ask     *order.Ask // set while waiting
	laneAsk *order.Ask // set while the pod is in the lane; it is cooling then

	slot resources.Vector // what it is charged as admitted
	// outgrown is what it requested when it was let through, if it requests less since: a
	// cycle that runs may have begun with that. Nil for most.
	outgrown *resources.Vector

	twins    *twins         // set once it was tried and found no node
	hopes    uint64         // of probing, when it was admitted
	reason   reasons.Reason // why it is unplaced, or was parked
	within   bool           // it is part of the demand, see demand.go
	beyond   reasons.Reason // which quota keeps it out of the demand
	erred    bool           // it failed for another reason than that no node fits
	notUntil time.Time      // end of its back-off
	treeGen  uint64         // of the tree it was assumed on
	late     *Pod           // the latest event while it is assumed
	tallied  tallied        // what it counts as in the census

	deadline time.Time // of the lease or of the cooling
	at       int       // in Store.deadlines
}

func newTurn() *turn { return &turn{at: ranking.Outside} }

// Place serves the ranking of deadlines.
func (t *turn) Place() *int { return &t.at }

// over tells whether nobody needs it any more, of a pod that runs.
func (t *turn) over() bool {
	waits := t.ask != nil || t.laneAsk != nil || !t.slot.IsZero() || t.twins != nil || t.at != ranking.Outside
	return !waits && t.outgrown == nil && t.late == nil && !t.tallied.in
}

// prospect is what is about to become of a pod. It is never written: what changes is
// another one, see [Store.foresee].
type prospect struct {
	weight
	chosenBy types.UID   // the asker it is to go for; empty for none
	counted  []types.UID // of a foreign pod: the owners that it is counted for
}

func (p *prospect) isEmpty() bool {
	return p.weight.equal(weight{}) && p.chosenBy == "" && len(p.counted) == 0
}

// shared is what all pods have that have none of their own. It stays empty.
type shared struct {
	turn     *turn
	prospect *prospect
	asks     *asks
}

func newShared() shared {
	return shared{turn: newTurn(), prospect: &prospect{}, asks: newAsks(nil)}
}

// foresee gives a pod another prospect.
func (s *Store) foresee(p *pod, next prospect) {
	if p.prospect = &next; next.isEmpty() {
		p.prospect = s.shared.prospect
	}
}

// chosen: a pod is to go for an asker, or, if that is empty, for nobody.
func (s *Store) chosen(p *pod, asker types.UID) {
	if p.chosenBy != asker {
		next := *p.prospect
		next.chosenBy = asker
		s.recounted(p, func() { s.foresee(p, next) })
	}
}

// ownAsks gives a pod what it knows of making room, if it has none of its own.
func (s *Store) ownAsks(p *pod) {
	if p.asks == s.shared.asks {
		p.asks = newAsks(p)
	}
}

// atWork lets go what only a pod needs that does not run.
func (s *Store) atWork(p *pod, now time.Time) {
	s.reports.settle(p, now)
	if p.asks.empty() {
		p.asks = s.shared.asks
	}
	if p.turn.over() {
		p.turn = s.shared.turn
	}
}

// check verifies that what is shared is empty.
func (s *shared) check() error {
	if !reflect.DeepEqual(s.turn, newTurn()) || !s.prospect.isEmpty() || !s.asks.empty() {
		return errors.New("pods that run share something that another pod knows")
	}
	return nil
}

// checkShares verifies that a pod has what it needs for itself.
func (s *Store) checkShares(p *pod) error {
	switch runs := p.state == bound; {
	case p.asks == s.shared.asks && p.Node == "":
		return errors.New("waits, and shares what it knows with pods that run")
	case p.turn == s.shared.turn && !runs:
		return errors.New("does not run, and shares its turn with pods that do")
	case runs && p.turn != s.shared.turn && p.turn.over():
		return errors.New("runs, and keeps a turn of its own for nothing")
	case p.prospect != s.shared.prospect && p.prospect.isEmpty():
		return errors.New("keeps a prospect of its own for nothing")
	}
	return nil
}
