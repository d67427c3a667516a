package evict

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

const (
	// patience is how long transient failures are tolerated while no victim has been
	// deleted for the asker.
	patience = 30 * time.Second
	// leadInterval is how often an asker with work is tried while this process has no lease.
	leadInterval = 250 * time.Millisecond
)

// wants is what the store wants for an asker and is not done yet; nil for nothing. Later
// work replaces earlier.
type wants struct {
	hold     *output.Work // the claim of this hold on the asker
	deletion *output.Work // the victims of its plan deleted
	ended    *output.Work // the claim of this hold withdrawn; nil once a later hold begins
	inquire  *output.Work // how the asker ended
}

// asker is the desired state of an asker, and the progress towards it. It exists until
// the desired state is reached.
type asker struct {
	wants                      // Executor.mu guards these fields
	taint   taintAnswer        // guarded, too
	written reservations.Claim // the last claim that was written
	plan    *plan              // the plan being carried out; nil before Commit
	// failing is the work whose tries fail since failedAt. A loss of the lease resets it.
	failing  *output.Work
	failedAt time.Time
}

// add merges work into the desired state of its asker.
func (e *Executor) add(w *output.Work) {
	if w.Kind == output.WorkTell {
		e.tellAsker(w, nil)
		return
	}
	e.mu.Lock()
	a := e.open[w.UID]
	if a == nil {
		a = &asker{}
		e.open[w.UID] = a
	}
	replaced := a.merge(w)
	e.mu.Unlock()
	if replaced != nil {
		e.tellAsker(replaced, nil)
	}
	if w.Kind == output.WorkRelease {
		e.Logger.V(2).Info("A hold has ended", "pod", ref(w.Ref), "node", w.Hold.Node, "ended", w.Ended, "why", w.Reason.String())
		after := time.Duration(0)
		if w.Ended == reservations.Bound {
			after = afterBound
		}
		e.untaint(w.Hold.Node, after)
	}
	e.askers.Forget(w.UID)
	e.askers.Add(w.UID)
}

// merge adds work to what is wanted. It returns an earlier release that a later write of the same
// condition makes unnecessary; nil for none. The caller still reports it.
func (a *asker) merge(w *output.Work) (replaced *output.Work) {
	switch w.Kind {
	case output.WorkInquire:
		a.inquire = w
	case output.WorkRelease:
		if a.hold != nil && a.hold.Hold.Since.After(w.Hold.Since) {
			return w
		}
		replaced, a.ended = a.ended, w
		a.hold, a.deletion = nil, nil
	default:
		replaced, a.ended = a.ended, nil
		a.hold = w
		if w.Kind == output.WorkDeleteVictims {
			a.deletion = w
		}
	}
	return replaced
}

// next returns what is wanted for an asker. It returns nil if there is nothing, and no plan
// is left to end.
func (e *Executor) next(uid types.UID) (*asker, wants) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.open[uid]
	if a == nil || a.plan == nil && a.wants == (wants{}) {
		delete(e.open, uid)
		return nil, wants{}
	}
	return a, a.wants
}

// done removes work from what is wanted. It returns false if the work was not wanted any
// more, because later work has replaced it.
func (e *Executor) done(a *asker, w *output.Work) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	for _, wanted := range []**output.Work{&a.hold, &a.deletion, &a.ended, &a.inquire} {
		if *wanted == w && w != nil {
			*wanted, found = nil, true
		}
	}
	return found
}

// wanted reports whether a plan is still wanted.
func (e *Executor) wanted(a *asker, w *output.Work) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return a.deletion == w
}

// noteFailure notes that a try of some work failed. It reports whether the work is tried again.
func (e *Executor) noteFailure(ctx context.Context, a *asker, w *output.Work, err error) bool {
	if a.failing != w {
		a.failing, a.failedAt = w, e.Clock.Now()
	}
	return e.stopped(ctx, err) || !final(err) && e.Clock.Since(a.failedAt) < patience
}

// reconcile does for an asker what can be done now. It is called again later if it returns an
// error. Without the lease it does nothing. A plan is committed again if the lease comes
// back.
func (e *Executor) reconcile(ctx context.Context, uid types.UID) error {
	for {
		a, want := e.next(uid)
		if a == nil {
			return nil
		}
		err := errNotLeading
		if !e.stopped(ctx, nil) {
			err = e.step(ctx, a, want)
		}
		if e.stopped(ctx, err) {
			a.plan, a.failing = nil, nil
			e.askers.AddAfter(uid, leadInterval)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// step takes one step towards the desired state. If it returns no error, the step is done
// or not wanted any more.
func (e *Executor) step(ctx context.Context, a *asker, want wants) error {
	switch p := a.plan; {
	case p != nil && (p.work != want.deletion || p.at == planOver):
		return e.endPlan(ctx, a, want)
	case p != nil:
		return e.advance(ctx, a)
	case want.deletion != nil:
		return e.beginPlan(ctx, a, want)
	case want.hold != nil:
		err := e.writeClaim(ctx, a, want.hold)
		if err != nil && !final(err) {
			return err
		}
		if err != nil && !errors.Is(err, errGone) {
			e.Logger.Error(err, "Cannot write the claim again, so after a restart the hold lasts longer. If rights are missing, allow the scheduler to patch pods/status",
				"pod", ref(want.hold.Ref), "node", want.hold.Hold.Node)
		}
		e.done(a, want.hold)
		return nil
	case want.ended != nil:
		return e.release(ctx, a, want.ended)
	case want.inquire != nil:
		return e.inquire(ctx, a, want.inquire)
	}
	return nil
}

// beginPlan writes the claim of a hold, has its node tainted, and commits its plan.
func (e *Executor) beginPlan(ctx context.Context, a *asker, want wants) error {
	w := want.deletion
	if err := e.writeClaim(ctx, a, want.hold); err != nil {
		if e.noteFailure(ctx, a, w, err) {
			return err
		}
		e.failPlan(a, w, reasons.New(reasons.HoldGivenUp, "node %s: the claim of pod %s/%s cannot be written: %v",
			w.Hold.Node, w.Namespace, w.Name, err))
		return nil
	}
	if err := e.awaitTaint(a, w); err != nil {
		if e.noteFailure(ctx, a, w, err) {
			return err
		}
		e.failPlan(a, w, cannotTaint(w, err))
		return nil
	}
	if !e.wanted(a, w) || e.stopped(ctx, nil) {
		return nil
	}
	switch going, ok := e.commit(a, w); {
	case !ok:
	case !claims(want.hold, going): // decided again meanwhile: the work of that decision writes its claim and the taint first
		e.done(a, w)
	default:
		a.plan, a.failing = newPlan(w, going, e.Clock.Now()), nil
	}
	return nil
}

// commit has the store judge a plan on the state of now. It returns the victims to be
// deleted; false if the plan is off.
func (e *Executor) commit(a *asker, w *output.Work) ([]output.Victim, bool) {
	going, why := e.Store.Commit(w.UID, e.InPermit(), e.Clock.Now())
	if !why.None() {
		e.Logger.V(2).Info("The plan is off", "pod", ref(w.Ref), "node", w.Hold.Node, "why", why.String())
		e.untaint(w.Hold.Node, 0)
		e.done(a, w)
	}
	return going, why.None()
}

// claims reports whether the claim that a piece of work wrote contains all pods to be
// deleted.
func claims(w *output.Work, going []output.Victim) bool {
	return !slices.ContainsFunc(going, func(v output.Victim) bool { return !slices.Contains(w.Hold.Chosen, v.UID) })
}

// completePlan reports to the store and in an event that all victims of a plan were deleted. If a
// victim stops at once, the asker may be bound, and its hold over, before that. The event
// names the victims all the same.
func (e *Executor) completePlan(a *asker, p *plan) {
	w := p.work
	lasts := e.done(a, w)
	if lasts {
		e.Logger.V(2).Info("Room is made", "pod", ref(w.Ref), "node", w.Hold.Node, "victims", len(p.going))
		e.Store.VictimsDeleted(w.UID, e.Clock.Now())
	}
	if lasts || len(p.going) > 0 {
		e.tellAsker(w, p.going)
	}
}

// failPlan reports to the store that the plan cannot be completed, unless its hold is
// already over: the asker may have another hold by now.
func (e *Executor) failPlan(a *asker, w *output.Work, why reasons.Reason, refused ...output.Undeletable) {
	if e.done(a, w) {
		e.Logger.Info("Making room is given up", "pod", ref(w.Ref), "node", w.Hold.Node, "why", why.Text)
		e.Store.FailPlan(w.UID, why, refused, e.Clock.Now())
	}
}
