package evict

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// boundReason is the reason of the condition of an asker that was bound.
const boundReason = "Bound"

// writeClaim writes the claim of a hold on its asker, unless the claim is already there.
func (e *Executor) writeClaim(ctx context.Context, a *asker, w *output.Work) error {
	pod, err := e.findAsker(w.Ref)
	if err != nil {
		return err
	}
	claim := w.Hold.Claim()
	if written := informer.Claim(pod); written != nil && covers(*written, claim) || covers(a.written, claim) {
		return nil
	}
	err = e.call(ctx, func(ctx context.Context) error { return e.setStatus(ctx, w.Ref, heldCondition(claim), false) })
	if err == nil {
		a.written = claim
	}
	return err
}

// heldCondition returns the condition that carries a claim.
func heldCondition(c reservations.Claim) corev1.PodCondition {
	return corev1.PodCondition{
		Type: reservations.HeldCondition, Status: corev1.ConditionTrue, Reason: string(reasons.OfHold(len(c.Victims), c.Note)),
		Message: c.Message(), LastTransitionTime: metav1.NewTime(c.Since),
	}
}

// covers reports whether a written claim makes another one superfluous: it is of the same
// hold, is clear since the same time, and contains all its victims.
func covers(written, claim reservations.Claim) bool {
	missing := func(v types.UID) bool { return !slices.Contains(written.Victims, v) }
	return written.Node == claim.Node && written.Since.Equal(claim.Since) && written.Decision == claim.Decision &&
		written.ClearSince.Equal(claim.ClearSince) && !slices.ContainsFunc(claim.Victims, missing)
}

// release withdraws the claim of a hold that has ended, and reports the reason. A
// transient failure is tried again without an end: after the next restart, a claim that
// remains would become a hold again.
func (e *Executor) release(ctx context.Context, a *asker, w *output.Work) error {
	pod, err := e.find(w.Ref)
	if err == nil && (pod.DeletionTimestamp != nil || w.Ended == reservations.Deleted) && (pod.Status.NominatedNodeName == "" || !mayBeNominated(pod, w)) {
		err = errGone
	}
	if err == nil {
		if written := informer.Claim(pod); written != nil && written.Since.After(w.Hold.Since) {
			e.done(a, w) // the claim of a later hold, which another leader began
			return nil
		}
		err = e.call(ctx, func(ctx context.Context) error {
			return e.setStatus(ctx, w.Ref, e.endedCondition(w), mayBeNominated(pod, w))
		})
	}
	switch {
	case err == nil:
		if e.done(a, w) {
			e.tellAsker(w, nil)
		}
		return nil
	case !final(err):
		e.Logger.V(2).Info("Cannot take back a claim yet", "pod", ref(w.Ref), "err", err)
		return err
	case !errors.Is(err, errGone):
		e.Logger.Error(err, "Cannot take back the claim of a pod after its hold ended; after a restart the pod would hold the node again. "+
			"If rights are missing, let the scheduler patch pods/status, or delete the pod",
			"pod", ref(w.Ref), "node", w.Hold.Node, "ended", w.Ended)
	}
	e.done(a, w)
	return nil
}

// mayBeNominated reports whether a hold that has ended may have left its asker nominated to
// the node. The scheduler's filters keep room for nominated pods. An asker without a
// scheduling cycle, for instance one of a full queue, would keep it forever. The scheduler
// writes the nomination after the plan is made, so a short hold can end before the informer
// has seen the nomination.
func mayBeNominated(asker *corev1.Pod, w *output.Work) bool {
	to := asker.Status.NominatedNodeName
	return w.Ended != reservations.Bound && asker.Spec.NodeName == "" && (to == w.Hold.Node || to == "")
}

// endedCondition returns the condition of an asker after the end of its hold.
func (e *Executor) endedCondition(w *output.Work) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: reservations.HeldCondition, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(e.Clock.Now()),
		Reason: string(w.Reason.Code), Message: w.Reason.Advice(),
	}
	if w.Ended == reservations.Bound {
		c.Reason, c.Message = boundReason, "The pod was bound to a node."
	}
	return c
}
