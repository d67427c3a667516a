package preemption

import (
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Holds has the holds of preemptors, the time when the next one times out, and the copy of
// them that is read without the store's lock.
//
// Until [Holds.Begin] it is filled from the claims that an earlier process wrote on pods.
// Other profiles schedule before that and keep off these nodes. The store then places the
// holds that are still possible.
type Holds struct {
	*reservations.Ledger                      // for reads only; the methods below change it
	early                *reservations.Ledger // nil after Begin
	view                 atomic.Pointer[reservations.View]
	viewStale            bool
	due                  time.Time // when the first hold times out; zero for never
	dueStale             bool
}

// newHolds returns holds of nothing, before Begin.
func newHolds() *Holds {
	h := &Holds{Ledger: reservations.NewLedger(), early: reservations.NewLedger()}
	h.view.Store(h.early.View())
	return h
}

// Claimed notes the claim on a pod, or that the pod has none or is gone. It has no effect
// after Begin.
func (h *Holds) Claimed(p *objects.Pod) {
	if h.early == nil {
		return
	}
	if _, had := h.early.End(p.UID); had {
		h.viewStale = true
	}
	c := p.Claim
	if c == nil || p.Node != "" || p.Terminal {
		return
	}
	hold := reservations.Hold{
		Asker: p.UID, Namespace: p.Namespace, Name: p.Name, Node: c.Node, Since: c.Since,
		Request: p.Request, Priority: p.Priority, Required: p.RequiredNode != "", Chosen: c.Victims,
	}
	if h.early.Place(hold) == nil { // an invalid claim is ignored
		h.viewStale = true
	}
}

// Begin ends the time of claims. It returns the nodes that claims held, which may be free
// again.
func (h *Holds) Begin() []string {
	nodes := h.early.Nodes()
	h.early, h.viewStale = nil, true
	return nodes
}

// Place is [reservations.Ledger.Place].
func (h *Holds) Place(hold reservations.Hold) error {
	err := h.Ledger.Place(hold)
	if err == nil {
		h.changed()
	}
	return err
}

// End is [reservations.Ledger.End].
func (h *Holds) End(asker types.UID) (reservations.Hold, bool) {
	hold, had := h.Ledger.End(asker)
	if had {
		h.changed()
	}
	return hold, had
}

// Commit is [reservations.Ledger.Commit].
func (h *Holds) Commit(asker types.UID, now time.Time) {
	h.Ledger.Commit(asker, now)
	h.changed()
}

// Choose is [reservations.Ledger.Choose].
func (h *Holds) Choose(asker types.UID, d reservations.Hold, now time.Time) {
	h.Ledger.Choose(asker, d, now)
	h.changed()
}

// VictimGone ends the wait for a pod, and returns the preemptors that waited for it.
func (h *Holds) VictimGone(uid types.UID, now time.Time) []types.UID {
	waiting := h.Waiting(uid)
	if len(waiting) > 0 {
		h.Ledger.VictimGone(uid, now)
		h.changed()
	}
	return waiting
}

func (h *Holds) changed() { h.viewStale, h.dueStale = true, true }

// TimesChange notes that a hold may time out at another time than before.
func (h *Holds) TimesChange() { h.dueStale = true }

// Due is when the first hold times out; zero for never. It is computed anew only if
// something changed since the last call.
func (h *Holds) Due(timeout time.Duration, from reservations.From) time.Time {
	if h.dueStale {
		h.dueStale = false
		h.due, _ = h.NextDue(timeout, from)
	}
	return h.due
}

// View returns the published copy. It may be called at any time.
func (h *Holds) View() *reservations.View { return h.view.Load() }

// Publish publishes a copy of the holds, or before Begin of the claims, if they changed.
func (h *Holds) Publish() {
	if !h.viewStale {
		return
	}
	h.viewStale = false
	if h.early != nil {
		h.view.Store(h.early.View())
		return
	}
	h.view.Store(h.Ledger.View())
}

// Check verifies the holds and the claims, and that what is published is not behind.
func (h *Holds) Check() error {
	ledger := h.Ledger
	if h.early != nil {
		ledger = h.early
	}
	var err error
	if !h.viewStale && len(ledger.View().All()) != len(h.View().All()) {
		err = errors.New("holds: the published copy is behind")
	}
	return errors.Join(h.Ledger.Check(), ledger.Check(), err)
}
