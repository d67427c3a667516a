package evict

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/internal/apianswer"
	"github.com/paddock-scheduler/paddock/pkg/internal/transitions"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// sparedReason is the reason of the DisruptionTarget of a victim that stays.
const sparedReason = "PreemptionCalledOff"

// victim is a pod to be deleted.
type victim struct {
	output.Victim
	pod *corev1.Pod // as it was last seen; nil before
	at  progress
	// err is the latest failure, nil for none. refused is true once a failure was final, be it of a
	// mark or of a delete. It is no state, because the victim may be in each of them then.
	err     error
	refused bool
}

// progress is how far a victim has come. A mark is its DisruptionTarget; another process may
// have written it.
//
//	maybeMarked: a write of its mark failed and may have taken effect
//	    from unmarked
//	marked: its mark is there
//	    from unmarked, maybeMarked
//	unmarkable: it is too large for the mark, and is deleted without
//	    from unmarked, maybeMarked
//	maybeDeleted: a delete was sent and may have taken effect
//	    from marked, unmarkable
//	gone: it is deleted, rejected or not there
//	    from unmarked, maybeMarked, marked, unmarkable, maybeDeleted
//	spared: it stays, and its mark is cleared, or the API server refuses that for good
//	    from unmarked, maybeMarked, marked
type progress uint8

const (
	unmarked progress = iota
	maybeMarked
	marked
	unmarkable
	maybeDeleted
	gone
	spared
)

func (s progress) String() string {
	return [...]string{"unmarked", "maybeMarked", "marked", "unmarkable", "maybeDeleted", "gone", "spared"}[s]
}

var ofVictim = transitions.Table[progress]{
	{From: []progress{unmarked}, To: maybeMarked, When: "a write of its mark failed and may have taken effect"},
	{From: []progress{unmarked, maybeMarked}, To: marked, When: "its mark is there"},
	{From: []progress{unmarked, maybeMarked}, To: unmarkable, When: "it is too large for the mark, and is deleted without"},
	{From: []progress{marked, unmarkable}, To: maybeDeleted, When: "a delete was sent and may have taken effect"},
	{From: []progress{unmarked, maybeMarked, marked, unmarkable, maybeDeleted}, To: gone, When: "it is deleted, rejected or not there"},
	{From: []progress{unmarked, maybeMarked, marked}, To: spared, When: "it stays, and its mark is cleared, or the API server refuses that for good"},
}

// to moves the victim on, as the table allows.
func (v *victim) to(next progress) { ofVictim.Move(&v.at, next) }

// isReady reports whether the victim may be deleted.
func (v *victim) isReady() bool { return v.at == marked || v.at == unmarkable || v.at == maybeDeleted }

// isLeaving reports whether the victim is being deleted and a delete of ours would not shorten
// its grace period.
func (v *victim) isLeaving() bool {
	has, gets := v.pod.DeletionGracePeriodSeconds, v.grace()
	return v.pod.DeletionTimestamp != nil && (has == nil || gets == nil || *has <= *gets)
}

// makeReady marks a running victim that is not leaving and was not marked yet. It fails with
// errGone if the victim is gone, and with errHalted if the mark is no longer wanted.
func (e *Executor) makeReady(ctx context.Context, a *asker, v *victim) error {
	pod, err := e.find(v.Ref)
	if err != nil {
		return err
	}
	if v.pod = pod; v.isLeaving() || pod.Spec.NodeName == "" {
		return nil
	}
	return e.mark(ctx, a, v)
}

// evict deletes a victim, or rejects it if it waits in Permit. It fails with errGone if
// the victim is gone, with errBinding if it has left Permit and is being bound, and with
// errHalted if the next call is no longer wanted.
func (e *Executor) evict(ctx context.Context, a *asker, v *victim) error {
	pod, err := e.find(v.Ref)
	if errors.Is(err, errGone) && v.at == maybeDeleted {
		e.tellVictim(a, v)
	}
	if err != nil {
		return err
	}
	if v.pod = pod; v.isLeaving() {
		return nil
	}
	if pod.Spec.NodeName == "" {
		return e.reject(ctx, a, v)
	}
	if err := e.mark(ctx, a, v); err != nil { // it left Permit since the others were marked
		return err
	}
	return e.delete(ctx, a, v)
}

// reject rejects a victim that has no node: it waits in Permit, or did when it was
// chosen.
func (e *Executor) reject(ctx context.Context, a *asker, v *victim) error {
	return e.callFor(ctx, a, func(context.Context) error {
		if !e.Reject(v.UID, v.Note) {
			return errBinding
		}
		e.tellVictim(a, v)
		return nil
	})
}

// mark writes DisruptionTarget on a victim, unless it is already there. A pod that is too large for
// it is deleted without it: a delete also makes the pod larger, but by less.
func (e *Executor) mark(ctx context.Context, a *asker, v *victim) error {
	if v.isReady() {
		return nil
	}
	if isMarked(v) {
		v.to(marked)
		return nil
	}
	return e.callFor(ctx, a, func(ctx context.Context) error {
		err := e.setStatus(ctx, v.Ref, e.disruptionTarget(v, corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler, v.Note), false)
		switch {
		case err == nil:
			v.to(marked)
		case apianswer.TooLarge(err):
			e.Logger.Info("A pod is deleted without a mark, for which it is too large",
				"victim", ref(v.Ref), "pod", ref(a.plan.work.Ref), "err", err)
			v.to(unmarkable)
			return nil
		case !final(err):
			v.to(maybeMarked)
		}
		return err
	})
}

// delete deletes a victim, and writes an event on it that names the asker.
func (e *Executor) delete(ctx context.Context, a *asker, v *victim) error {
	var begun bool
	err := e.callFor(ctx, a, func(ctx context.Context) error {
		begun = true
		return e.deletePod(ctx, v)
	})
	if err == nil || errors.Is(err, errGone) && v.at == maybeDeleted {
		e.tellVictim(a, v)
	}
	if begun && !final(err) {
		v.to(maybeDeleted)
	}
	return err
}

// disruptionTarget returns the DisruptionTarget of a victim.
func (e *Executor) disruptionTarget(v *victim, status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
	since := metav1.NewTime(e.Clock.Now())
	if c := informer.Condition(v.pod, corev1.DisruptionTarget); c != nil && c.Status == status {
		since = c.LastTransitionTime
	}
	return corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: status, Reason: reason, Message: message, LastTransitionTime: since,
	}
}

// isMarked reports whether the victim was seen with the DisruptionTarget of this plan.
func isMarked(v *victim) bool {
	c := informer.Condition(v.pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue &&
		c.Reason == corev1.PodReasonPreemptionByScheduler && c.Message == v.Note
}

// spare clears the marks of the victims of a plan that are left and not chosen for the
// asker any more. It gives up after some time of transient failures: the cluster's
// disruption controller clears a mark that stays on a running pod after two minutes.
func (e *Executor) spare(ctx context.Context, a *asker, hold *output.Work) (failed error) {
	p := a.plan
	for _, v := range p.left {
		chosen := hold != nil && hold != p.work && slices.Contains(hold.Hold.Chosen, v.UID)
		pod, err := e.find(v.Ref)
		if chosen || err != nil {
			continue
		}
		v.pod = pod
		mayBeMarked := v.at == maybeMarked || v.at == marked || isMarked(v)
		if v.isLeaving() || v.at == spared || v.at == maybeDeleted || !mayBeMarked {
			continue
		}
		err = e.call(ctx, func(ctx context.Context) error {
			return e.setStatus(ctx, v.Ref, e.disruptionTarget(v, corev1.ConditionFalse, sparedReason,
				"The pod stays: making room for another one was called off."), false)
		})
		switch {
		case err == nil, errors.Is(err, errGone):
		case e.noteFailure(ctx, a, p.work, err):
			failed = err
			continue
		default:
			e.Logger.Error(err, "Cannot clear the mark DisruptionTarget of a pod that stays. If rights are missing, let the scheduler patch pods/status; "+
				"otherwise the cluster's disruption controller clears it after two minutes", "pod", ref(v.Ref))
		}
		v.to(spared)
	}
	return failed
}

// tellVictim writes an event on a victim that names the asker for which it is deleted.
func (e *Executor) tellVictim(a *asker, v *victim) {
	profile := v.pod.Spec.SchedulerName
	var about runtime.Object // the asker; nil if it is gone
	if asker, _ := e.find(a.plan.work.Ref); asker != nil {
		profile, about = asker.Spec.SchedulerName, asker
	}
	e.Recorder(profile).Eventf(v.pod, about, corev1.EventTypeNormal, string(reasons.Preempted), "Preempting", "%s", reasons.Note(v.Note))
}

// callFor makes a call for a victim, unless the plan is superseded.
func (e *Executor) callFor(ctx context.Context, a *asker, do func(context.Context) error) error {
	if e.isSuperseded(a) {
		return errHalted
	}
	return e.call(ctx, do)
}
