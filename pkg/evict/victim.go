package evict

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// sparedReason is the reason of the DisruptionTarget of a victim that stays.
const sparedReason = "PreemptionCalledOff"

// victim is a pod to be deleted.
type victim struct {
	store.Victim
	pod *corev1.Pod // as it was last seen; nil before
	// marked is true if its DisruptionTarget may be True.
	marked bool
	// sent is true if a delete failed in a way in which it may have taken effect.
	sent bool
	gone bool
	// err is the latest failure, nil for none. refused is true if one failure was final.
	err     error
	refused bool
}

// letGo deletes a victim, or rejects it if it waits in Permit. It fails with errGone if
// the victim is gone, with errBinding if it has left Permit and is being bound, and with
// errHalted if the next step is no longer wanted.
func (d *disruption) letGo(ctx context.Context, v *victim) error {
	pod, err := d.find(v.Ref)
	if errors.Is(err, errGone) && v.sent {
		d.tellVictim(v)
	}
	if err != nil {
		return err
	}
	if v.pod = pod; pod.DeletionTimestamp != nil {
		return nil
	}
	if rejected, err := d.reject(ctx, v); rejected || err != nil {
		return err
	}
	if err := d.mark(ctx, v); err != nil {
		return err
	}
	return d.delete(ctx, v)
}

// reject rejects a victim that has no node: it waits in Permit, or did when it was
// chosen.
func (d *disruption) reject(ctx context.Context, v *victim) (bool, error) {
	if v.pod.Spec.NodeName != "" {
		return false, nil // it was bound long ago
	}
	var rejected bool
	err := d.step(ctx, func(context.Context) error {
		if rejected = d.Reject != nil && d.Reject(v.UID, v.Note); !rejected {
			return errBinding
		}
		return nil
	})
	if rejected {
		d.tellVictim(v)
	}
	return rejected, err
}

// mark writes DisruptionTarget on a victim, unless it is already there.
func (d *disruption) mark(ctx context.Context, v *victim) error {
	if isMarked(v) {
		v.marked = true
		return nil
	}
	return d.step(ctx, func(ctx context.Context) error {
		v.marked = true
		return d.setCondition(ctx, v.Ref, d.target(v, corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler, v.Note))
	})
}

// delete deletes a victim, and writes an event on it that names the asker.
func (d *disruption) delete(ctx context.Context, v *victim) error {
	var begun bool
	err := d.step(ctx, func(ctx context.Context) error {
		begun = true
		return d.remove(ctx, v)
	})
	if err == nil || errors.Is(err, errGone) && v.sent {
		d.tellVictim(v)
	}
	v.sent = v.sent || begun && !final(err)
	return err
}

// target returns the DisruptionTarget of a victim.
func (d *disruption) target(v *victim, status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
	since := metav1.NewTime(d.Clock.Now())
	if c := conditionOf(v.pod, corev1.DisruptionTarget); c != nil && c.Status == status {
		since = c.LastTransitionTime
	}
	return corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: status, Reason: reason, Message: message, LastTransitionTime: since,
	}
}

// isMarked reports whether the victim was seen with the DisruptionTarget of this plan.
func isMarked(v *victim) bool {
	c := conditionOf(v.pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler && c.Message == v.Note
}

// spare clears the marks of the victims that are left, as far as possible. A mark that
// stays on a running pod is cleared by the cluster's disruption controller after two
// minutes.
func (d *disruption) spare(ctx context.Context) {
	var all sync.WaitGroup
	for _, v := range d.left {
		pod, err := d.find(v.Ref)
		if err != nil || pod.DeletionTimestamp != nil {
			continue
		}
		if v.pod = pod; v.sent || !v.marked {
			continue
		}
		all.Go(func() {
			err := d.persist(ctx, func(ctx context.Context) error {
				return d.setCondition(ctx, v.Ref, d.target(v, corev1.ConditionFalse, sparedReason,
					"The pod stays: making room for another one was called off."))
			})
			if err != nil && !errors.Is(err, errGone) && !d.stopped(ctx, err) {
				d.Logger.Error(err, "Cannot take back the mark of a pod that stays", "pod", ref(v.Ref))
			}
		})
	}
	all.Wait()
}

// tellVictim writes an event on a victim that names the asker for which it is deleted.
func (d *disruption) tellVictim(v *victim) {
	asker, _ := d.find(d.work.Ref) // nil if it is gone
	profile := v.pod.Spec.SchedulerName
	if asker != nil {
		profile = asker.Spec.SchedulerName
	}
	d.Recorder(profile).Eventf(v.pod, related(asker), corev1.EventTypeNormal, string(reasons.Preempted), "Preempting", "%s", d.Note(v.Note))
}
