package evict

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// patience is how long transient failures are tolerated while no victim has been deleted
// for the asker.
const patience = 30 * time.Second

// boundReason is the reason of the condition of an asker that was bound.
const boundReason = "Bound"

// record writes the claim of a hold on its asker, unless the claim is already there.
func (e *Executor) record(ctx context.Context, w store.Work) error {
	if e.stopped(ctx, nil) {
		return errNotLeading
	}
	pod, err := e.asker(w.Ref)
	if err != nil {
		return err
	}
	claim := w.Hold.Claim()
	if written, ok := claimOn(pod); ok && covers(written, claim) {
		return nil
	}
	return e.persist(ctx, func(ctx context.Context) error {
		return e.setCondition(ctx, w.Ref, heldCondition(claim))
	})
}

// heldCondition returns the condition that carries a claim.
func heldCondition(c reservations.Claim) corev1.PodCondition {
	reason := reasons.MakingRoom
	switch {
	case len(c.Victims) > 0:
	case c.Note != "":
		reason = reasons.RoomAwaited
	default:
		reason = reasons.WaitingForRoom
	}
	return corev1.PodCondition{
		Type: reservations.HeldCondition, Status: corev1.ConditionTrue, Reason: string(reason),
		Message: c.Message(), LastTransitionTime: metav1.NewTime(c.Since),
	}
}

// claimOn returns the claim on a pod.
func claimOn(pod *corev1.Pod) (reservations.Claim, bool) {
	c := conditionOf(pod, reservations.HeldCondition)
	if c == nil || c.Status != corev1.ConditionTrue {
		return reservations.Claim{}, false
	}
	claim, err := reservations.ParseClaim(c.Message)
	return claim, err == nil
}

// covers reports whether a written claim makes another one superfluous: it is of the same
// hold, is clear since the same time, and contains all its victims.
func covers(written, claim reservations.Claim) bool {
	missing := func(v types.UID) bool { return !slices.Contains(written.Victims, v) }
	return written.Node == claim.Node && written.Since.Equal(claim.Since) && written.Decision == claim.Decision &&
		written.ClearSince.Equal(claim.ClearSince) && !slices.ContainsFunc(claim.Victims, missing)
}

// release withdraws the claim of a hold that has ended, and reports the reason. It
// retries until the write succeeds or is not needed: after the next restart, a claim that
// remains would become a hold again.
func (e *Executor) release(ctx context.Context, w store.Work) {
	e.Logger.V(2).Info("A hold has ended", "pod", ref(w.Ref), "node", w.Hold.Node, "ended", w.Ended, "why", w.Reason.String())
	after := time.Duration(0)
	if w.Ended == reservations.Bound {
		after = afterBound
	}
	e.letOthersOn(ctx, w.Hold.Node, after)
	if w.Ended == reservations.Deleted {
		return
	}
	for try := 0; e.awaitLead(ctx) == nil; try++ {
		pod, err := e.asker(w.Ref)
		if err == nil {
			if written, ok := claimOn(pod); ok && written.Since.After(w.Hold.Since) {
				return // of a later hold, which another leader began
			}
			err = e.call(ctx, anyway, func(ctx context.Context) error {
				return e.setStatus(ctx, w.Ref, e.endedCondition(w), nominatedByHold(pod, w))
			})
		}
		switch {
		case err == nil:
			e.tellEnd(pod, w)
			return
		case errors.Is(err, errGone):
			return
		case final(err):
			e.Logger.Error(err, "Cannot take back the claim of a pod whose hold has ended; it will hold the node again after a restart",
				"pod", ref(w.Ref), "node", w.Hold.Node, "ended", w.Ended)
			return
		}
		e.Logger.V(2).Info("Cannot take back a claim yet", "pod", ref(w.Ref), "err", err)
		if e.pause(ctx, backoff(try)) != nil {
			return
		}
	}
}

// nominatedByHold reports whether a hold that has ended left its asker nominated to the
// node. The scheduler's filters reserve capacity for nominated pods. An asker without a
// scheduling cycle, for instance one of a full queue, would keep that capacity forever.
func nominatedByHold(asker *corev1.Pod, w store.Work) bool {
	return w.Ended != reservations.Bound && asker.Spec.NodeName == "" && asker.Status.NominatedNodeName == w.Hold.Node
}

// endedCondition returns the condition of an asker after the end of its hold.
func (e *Executor) endedCondition(w store.Work) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: reservations.HeldCondition, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(e.Clock.Now()),
		Reason: string(w.Reason.Code), Message: e.Advice(w.Reason),
	}
	if w.Ended == reservations.Bound {
		c.Reason, c.Message = boundReason, "The pod was bound to a node."
	}
	return c
}

// tellEnd writes an event on the asker that says why its hold has ended. It writes none
// if the asker was bound.
func (e *Executor) tellEnd(pod *corev1.Pod, w store.Work) {
	if w.Ended == reservations.Bound {
		return
	}
	e.warn(pod, w.Reason)
}

func (e *Executor) warn(pod *corev1.Pod, why reasons.Reason) {
	e.Recorder(pod.Spec.SchedulerName).Eventf(pod, nil, corev1.EventTypeWarning, string(why.Code), "Preempting", "%s", e.Advice(why))
}
