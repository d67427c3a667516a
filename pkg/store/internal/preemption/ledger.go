package preemption

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Holds has the holds of preemptors, the time when the next one times out, and the copy of
// them that is read without the store's lock.
//
// Until [Holds.Begin] it is filled from the claims that an earlier process wrote on pods.
// Other profiles schedule before that and keep off these nodes. The store then places the
// holds that are still possible.
type Holds struct {
	*reservations.Ledger
	restored *reservations.Ledger // from claims; nil after Begin
	view     atomic.Pointer[reservations.View]
	due      time.Time          // when the first hold times out; zero for never
	dueOf    *reservations.View // the holds for which due was computed; nil for none
}

// newHolds returns holds of nothing, before Begin.
func newHolds() *Holds {
	h := &Holds{Ledger: reservations.NewLedger(), restored: reservations.NewLedger()}
	h.Publish()
	return h
}

// Claimed notes the claim on a pod, or that the pod has none or is gone. It returns the node
// that the pod claimed before; empty if there is none or it claims that node still. It has no
// effect after Begin.
func (h *Holds) Claimed(p *objects.Pod) (freed string) {
	if h.restored == nil {
		return ""
	}
	before, _ := h.restored.End(p.UID)
	c := p.Claim
	if c == nil || p.Node != "" || p.Terminal || p.Foreign && p.RequiredNode == "" {
		return before.Node
	}
	_ = h.restored.Place(reservations.Hold{ // an invalid claim is ignored
		Asker: p.UID, Namespace: p.Namespace, Name: p.Name, Node: c.Node, Since: c.Since,
		Request: p.Request, Priority: p.Priority, NodeBound: p.RequiredNode != "", Chosen: c.Victims,
	})
	if after, _ := h.restored.Of(p.UID); after.Node == before.Node {
		return ""
	}
	return before.Node
}

// Begin ends the time of claims. It returns the nodes that claims held, which may be free
// again.
func (h *Holds) Begin() []string {
	nodes := h.restored.Nodes()
	h.restored = nil
	return nodes
}

// TimesChange notes that a hold may time out at another time than before.
func (h *Holds) TimesChange() { h.dueOf = nil }

// Due is when the first hold times out; zero for never. It is computed again only if
// something changed since the last call.
func (h *Holds) Due(timeout time.Duration, from reservations.From) time.Time {
	if v := h.Ledger.View(); v != h.dueOf {
		h.dueOf = v
		h.due, _ = h.NextDue(timeout, from)
	}
	return h.due
}

// View returns the published copy. It may be called at any time.
func (h *Holds) View() *reservations.View { return h.view.Load() }

// Publish publishes a copy of the holds, or before Begin of the claims.
func (h *Holds) Publish() { h.view.Store(h.shown().View()) }

// shown returns the ledger to publish.
func (h *Holds) shown() *reservations.Ledger {
	if h.restored != nil {
		return h.restored
	}
	return h.Ledger
}

// Check verifies the holds and the claims, and that what is published is not behind.
func (h *Holds) Check() error {
	var err error
	if h.shown().View() != h.View() {
		err = errors.New("holds: the published copy is behind")
	}
	return errors.Join(h.Ledger.Check(), h.shown().Check(), err)
}

// Ending is how a hold ends.
type Ending struct {
	End  reservations.End
	Node string // where the preemptor is placed; empty for none
	Why  reasons.Reason
	// Failed is why the plan was not carried out.
	Failed Failure
}

// Failure is why a plan was not carried out.
type Failure uint8

// The failures of plans.
const (
	NotFailed    Failure = iota // it was carried out, or its hold ended before
	CallFailed                  // a call of the executor failed
	CheckRefused                // the check before the deletes refused it
	PlanUndone                  // that check found room, or that the PodGroup cannot start; see [Losses]
)

// IsLost tells whether a hold that ends is lost; see [Losses]. A preemptor that is deleted loses
// nothing, but its PodGroup does if that has not started.
func (e *Ending) IsLost(h *reservations.Hold, groupIncomplete bool) bool {
	switch {
	case e.End == reservations.Deleted:
		return groupIncomplete && h.OnlyThisNode()
	case e.Node != "" || e.End == reservations.Bound:
		return false
	}
	return h.OnlyThisNode() || e.End == reservations.TimedOut || e.Failed != NotFailed
}
