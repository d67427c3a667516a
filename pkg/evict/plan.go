package evict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/apianswer"
	"github.com/paddock-scheduler/paddock/pkg/internal/transitions"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// lastPatience is how long failures are tolerated once a victim has been deleted for the
// asker.
const lastPatience = 2 * time.Minute

// errHalted means that no further victim must be deleted.
var errHalted = errors.New("no other pod is deleted for now")

// plan is the progress of a plan that was committed.
type plan struct {
	work   *output.Work
	going  []output.Victim // all that were to be deleted at the commit
	chosen int             // number of victims of the claim, gone or not
	left   []*victim       // those of going that are not deleted yet
	began  time.Time
	at     stage
	why    error   // why the plan is given up; nil where the store refused it
	told   *victim // the victim that the last event named; see tellStuck
}

// stage is how far a plan has come since the store judged it.
//
//	late: a mark could not be written
//	    from judged
//	judged: it is judged again, or a victim was deleted before
//	    from late
//	over: it is given up, or is judged again and is not lawful or has other victims
//	    from judged, late
type stage uint8

const (
	planJudged stage = iota
	planLate
	planOver
)

func (s stage) String() string { return [...]string{"judged", "late", "over"}[s] }

var ofPlan = transitions.Table[stage]{
	{From: []stage{planJudged}, To: planLate, When: "a mark could not be written"},
	{From: []stage{planLate}, To: planJudged, When: "it is judged again, or a victim was deleted before"},
	{From: []stage{planJudged, planLate}, To: planOver, When: "it is given up, or is judged again and is not lawful or has other victims"},
}

// to moves the plan on, as the table allows.
func (p *plan) to(next stage) { ofPlan.Move(&p.at, next) }

func newPlan(w *output.Work, going []output.Victim, now time.Time) *plan {
	p := &plan{work: w, going: going, chosen: max(len(w.Hold.Claim().Victims), len(going)), began: now}
	for _, v := range going {
		p.left = append(p.left, &victim{Victim: v})
	}
	return p
}

// advance tries to delete the victims of a plan. None is deleted before all are marked, and
// the plan is judged again if that took more than one try. After a final failure, the next
// deletes are for the victims that failed only.
func (e *Executor) advance(ctx context.Context, a *asker) error {
	p := a.plan
	toMark := slices.DeleteFunc(slices.Clone(p.left), (*victim).isReady)
	switch {
	case !p.try(toMark, func(v *victim) error { return e.makeReady(ctx, a, v) }):
		p.to(planLate)
	case p.at == planLate && len(p.left) == len(p.going) && !e.isSuperseded(a) && !e.isLawful(ctx, a):
		p.to(planOver)
		return nil
	default:
		p.to(planJudged)
		p.try(p.toTry(), func(v *victim) error {
			err := e.evict(ctx, a, v)
			if err == nil || errors.Is(err, errGone) {
				v.to(gone)
			}
			return err
		})
		if refused := p.refusals(); len(refused) > 0 { // at once: the hold may end, and another plan choose them, before this plan ends
			e.Store.VictimsRefused(refused, e.Clock.Now())
		}
	}
	p.left = slices.DeleteFunc(p.left, func(v *victim) bool { return v.at == gone })
	switch {
	case e.stopped(ctx, nil):
		return errNotLeading
	case len(p.left) == 0:
		a.plan = nil
		e.completePlan(a, p)
		return nil
	}
	if p.why = e.whyFailed(a); p.why == nil {
		e.tellStuck(p)
		return cmp.Or(p.stuckVictim().err, errHalted)
	}
	p.to(planOver)
	return nil
}

// try takes a step for some victims. It ends at a final failure, and reports whether there
// was no failure.
func (p *plan) try(turn []*victim, step func(*victim) error) (all bool) {
	all = true
	for _, v := range turn {
		err := step(v)
		if err == nil || errors.Is(err, errGone) {
			v.err = nil
			continue
		}
		all = false
		if errors.Is(err, errHalted) {
			continue
		}
		if v.err = err; final(err) {
			v.refused = true
			break
		}
	}
	return all
}

// tellStuck writes an event on the asker about a victim that was refused after others were
// deleted, unless the last event was about the same victim. The plan can then be neither
// completed nor given up for a while.
func (e *Executor) tellStuck(p *plan) {
	v := p.stuckVictim()
	if !v.refused || v.err == nil || p.told == v {
		return
	}
	p.told = v
	e.Logger.Error(v.err, "Cannot mark or delete a victim; retrying for a while, then the plan is given up",
		"victim", ref(v.Ref), "pod", ref(p.work.Ref), "patience", lastPatience)
	e.tell(p.work, corev1.EventTypeWarning, reasons.MakingRoom,
		reasons.Note(fmt.Sprintf("Pod %s/%s%s, which is to make room on node %s, does not go: %v. It is tried again for up to %v, then the plan is given up.",
			v.Namespace, v.Name, ofQueue(v.Victim), p.work.Hold.Node, v.err, lastPatience)))
}

// isLawful has the store judge a plan again, of which no victim was deleted. It reports
// whether the same victims go as before, except for those that are gone.
func (e *Executor) isLawful(ctx context.Context, a *asker) bool {
	p := a.plan
	if e.stopped(ctx, nil) {
		return false
	}
	going, ok := e.commit(a, p.work)
	named := func(in []output.Victim, uid types.UID) bool {
		return slices.ContainsFunc(in, func(v output.Victim) bool { return v.UID == uid })
	}
	stays := func(v *victim) bool {
		if named(going, v.UID) {
			return false
		}
		pod, err := e.find(v.Ref)
		if err != nil {
			return !errors.Is(err, errGone)
		}
		v.pod = pod
		return !v.isLeaving()
	}
	return ok && !slices.ContainsFunc(p.left, stays) &&
		!slices.ContainsFunc(going, func(v output.Victim) bool { return !named(p.going, v.UID) })
}

// toTry returns the victims to delete next.
func (p *plan) toTry() []*victim {
	refused := slices.DeleteFunc(slices.Clone(p.left), func(v *victim) bool { return !v.refused })
	if len(refused) > 0 {
		return refused
	}
	return p.left
}

// isSuperseded reports whether the asker no longer waits for the node, or waits for other
// victims.
func (e *Executor) isSuperseded(a *asker) bool {
	if !e.wanted(a, a.plan.work) {
		return true
	}
	_, err := e.findAsker(a.plan.work.Ref)
	return errors.Is(err, errGone)
}

// whyFailed returns why a plan has failed; nil while it may continue.
func (e *Executor) whyFailed(a *asker) error {
	if e.isSuperseded(a) {
		return errHalted
	}
	p, most := a.plan, patience
	if p.begun() {
		most = lastPatience
	}
	v := p.stuckVictim()
	if v.refused && !p.begun() || e.Clock.Since(p.began) >= most {
		return v.err
	}
	return nil
}

// begun reports whether any victim has been deleted for the asker, by this process or an
// earlier one.
func (p *plan) begun() bool { return len(p.left) < p.chosen }

// stuckVictim returns the victim to name in messages: of those whose latest try failed the
// first that was refused, otherwise the first.
func (p *plan) stuckVictim() *victim {
	stuck := p.left[0]
	for _, v := range p.left {
		if v.err != nil && (stuck.err == nil || v.refused && !stuck.refused) {
			stuck = v
		}
	}
	return stuck
}

// endPlan clears the marks of the victims that stay, because a plan has failed or is not
// lawful any more, its hold has ended, or another plan has replaced it. Then it reports a
// failure to the store.
func (e *Executor) endPlan(ctx context.Context, a *asker, want wants) error {
	p := a.plan
	if err := e.spare(ctx, a, want.hold); err != nil {
		return err
	}
	a.plan = nil
	if p.why == nil {
		return nil
	}
	why := p.failure()
	if !errors.Is(p.why, errBinding) || !p.work.Hold.NodeBound || p.begun() {
		e.failPlan(a, p.work, why, p.refusals()...)
	} else if e.done(a, p.work) {
		e.Logger.V(2).Info("The plan is off", "pod", ref(p.work.Ref), "node", p.work.Hold.Node, "why", why.Text)
		e.Store.AbortPlan(p.work.UID, why, e.Clock.Now())
		e.untaint(p.work.Hold.Node, 0)
	}
	return nil
}

// failure returns why a plan was given up.
func (p *plan) failure() reasons.Reason {
	w := p.work
	if errors.Is(p.why, errHalted) {
		return reasons.New(reasons.HoldGivenUp, "node %s: pod %s/%s, for which room was being made, is gone",
			w.Hold.Node, w.Namespace, w.Name)
	}
	v := p.stuckVictim()
	return reasons.New(reasons.HoldGivenUp, "node %s: pod %s/%s%s does not go: %s; of %d pods that were to go %d stay",
		w.Hold.Node, v.Namespace, v.Name, ofQueue(v.Victim), withAdvice(p.why), p.chosen, len(p.left))
}

// withAdvice is the text of a failure, with what helps if the pod is too large.
func withAdvice(err error) string {
	if apianswer.TooLarge(err) {
		return err.Error() + " (the pod is as large as a stored object may be, and a delete makes it larger, also with --force: shorten its annotations first)"
	}
	return err.Error()
}

// refusals returns the victims that the API server refused to delete for good, also in its
// latest answer. A pod that is being bound is none: it may be deleted later.
func (p *plan) refusals() (out []output.Undeletable) {
	for _, v := range p.left {
		if v.refused && final(v.err) && !errors.Is(v.err, errBinding) {
			out = append(out, output.Undeletable{UID: v.UID, Why: withAdvice(v.err)})
		}
	}
	return out
}
