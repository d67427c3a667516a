package preemption

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Ledger has the holds of askers, the time when the next one times out, and the copy of
// them that is read without the store's lock.
//
// Until [Ledger.EndRestore] it is filled from the claims that an earlier process wrote on pods.
// Other profiles schedule before that and keep off these nodes. The store then places the
// holds that are still possible.
type Ledger struct {
	*reservations.Ledger
	restored *reservations.Ledger // from claims; nil after EndRestore
	view     atomic.Pointer[reservations.View]
	due      time.Time          // when the first hold times out; zero for never
	dueOf    *reservations.View // the holds for which due was computed; nil for none
}

// newLedger returns a ledger without holds, before EndRestore.
func newLedger() *Ledger {
	l := &Ledger{Ledger: reservations.NewLedger(), restored: reservations.NewLedger()}
	l.Publish()
	return l
}

// Claimed notes the claim on a pod, or that the pod has none or is gone. It returns the node
// that the pod claimed before; empty if there is none or it claims that node still. It has no
// effect after EndRestore.
func (l *Ledger) Claimed(p *objects.Pod) (freed string) {
	if l.restored == nil {
		return ""
	}
	before, _ := l.restored.End(p.UID)
	c := p.Claim
	if c == nil || p.Node != "" || p.Deleting || p.Terminal || p.Foreign && p.RequiredNode == "" {
		return before.Node
	}
	_ = l.restored.Place(reservations.Hold{ // an invalid claim is ignored
		Asker: p.UID, Namespace: p.Namespace, Name: p.Name, Node: c.Node, Since: c.Since,
		Request: p.Request, Priority: p.Priority, NodeBound: p.RequiredNode != "", Chosen: c.Victims,
	})
	if after, _ := l.restored.Of(p.UID); after.Node == before.Node {
		return ""
	}
	return before.Node
}

// EndRestore drops the claims. It returns the nodes that they held, which may be free again.
func (l *Ledger) EndRestore() []string {
	nodes := l.restored.Nodes()
	l.restored = nil
	return nodes
}

// TimesChange notes that a hold may time out at another time than before.
func (l *Ledger) TimesChange() { l.dueOf = nil }

// Due is when the first hold times out; zero for never. It is computed again only if
// something changed since the last call.
func (l *Ledger) Due(timeout time.Duration, from reservations.From) time.Time {
	if v := l.Ledger.View(); v != l.dueOf {
		l.dueOf = v
		l.due, _ = l.NextDue(timeout, from)
	}
	return l.due
}

// View returns the published copy. It may be called at any time.
func (l *Ledger) View() *reservations.View { return l.view.Load() }

// Publish publishes a copy of the holds, or before EndRestore of the claims.
func (l *Ledger) Publish() { l.view.Store(l.shown().View()) }

// shown returns the ledger to publish.
func (l *Ledger) shown() *reservations.Ledger {
	if l.restored != nil {
		return l.restored
	}
	return l.Ledger
}

// Check verifies the holds and the claims, and that what is published is not behind.
func (l *Ledger) Check() error {
	var err error
	if l.shown().View() != l.View() {
		err = errors.New("holds: the published copy is behind")
	}
	return errors.Join(l.Ledger.Check(), l.shown().Check(), err)
}

// Ending is how a hold ends.
type Ending struct {
	End  reservations.End
	Node string // where the asker is placed; empty for none
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

// IsLost tells whether a hold that ends is lost; see [Losses]. An asker that is deleted loses
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
