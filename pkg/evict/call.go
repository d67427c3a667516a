package evict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/internal/apianswer"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
)

// callTimeout limits one call, including the wait for the client's rate limiter.
const callTimeout = 5 * time.Second

var (
	// errGone means that the pod is gone, or that another pod has its name.
	errGone = errors.New("the pod is gone")
	// errBinding means that the pod has left Permit and has no node yet. The error is
	// final, because a pod must not be deleted while it is being bound. If other victims
	// have been deleted, the pod is tried again; by then it runs like any other.
	errBinding = errors.New("the pod is being bound")
	// errNotLeading means that this process does not hold the lease.
	errNotLeading = errors.New("this process does not lead")
)

// call makes one API call, if this process leads.
func (e *Executor) call(ctx context.Context, do func(context.Context) error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !e.Leading():
		return errNotLeading
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return do(ctx)
}

// final reports whether a failure ends the try at once: the API server would repeat its
// answer, the pod is gone or being bound, or another scheduler has tainted the node.
func final(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, errBinding) || errors.Is(err, errOtherTaint) || apianswer.Final(err)
}

// setStatus writes a condition on a pod and, if wanted, clears its nomination. It fails
// with errGone if the pod is gone.
func (e *Executor) setStatus(ctx context.Context, pod objects.Ref, c corev1.PodCondition, noNomination bool) error {
	status := map[string]any{"conditions": []any{map[string]any{
		"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message,
		"lastTransitionTime": c.LastTransitionTime,
	}}}
	if noNomination {
		status["nominatedNodeName"] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encode condition %s: %w", c.Type, err)
	}
	_, err = e.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err = e.orGone(ctx, pod, err); err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("write condition %s: %w", c.Type, err)
	}
	return err
}

// deletePod deletes a victim. It fails with errGone if the victim is gone. The delete names
// the grace period, because only then it shortens that of an earlier delete.
func (e *Executor) deletePod(ctx context.Context, v *victim) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(v.UID)), GracePeriodSeconds: v.grace()}
	err := e.Client.CoreV1().Pods(v.Namespace).Delete(ctx, v.Name, options)
	if err = e.orGone(ctx, v.Ref, err); err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("delete: %w", err)
	}
	return err
}

// orGone returns errGone if a call failed because the pod is gone, else the error. If the pod has another
// UID, a delete returns a conflict, and a patch returns invalid. Both answers have other
// causes, too, so orGone reads the pod.
func (e *Executor) orGone(ctx context.Context, pod objects.Ref, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return errGone
	case !apierrors.IsConflict(err) && !apierrors.IsInvalid(err):
		return err
	}
	found, lookup := e.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(lookup):
		return errGone
	case lookup != nil:
		return errors.Join(err, lookup)
	case found.UID != pod.UID:
		return errGone
	}
	return err
}

// find returns a pod as it was last seen, or errGone. A pod that was not seen counts as
// gone, because the store knows pods from the same source.
func (e *Executor) find(pod objects.Ref) (*corev1.Pod, error) {
	if found := informer.Find(e.Pods, pod); found != nil {
		return found, nil
	}
	return nil, errGone
}

// findAsker returns an asker. It returns errGone also for an asker that is being deleted.
func (e *Executor) findAsker(pod objects.Ref) (*corev1.Pod, error) {
	found, err := e.find(pod)
	if err == nil && found.DeletionTimestamp != nil {
		return nil, errGone
	}
	return found, err
}

// grace returns how many seconds the victim has to stop: as many as its pod says, or fewer
// if victims may have fewer; nil if its pod does not say.
func (v *victim) grace() *int64 {
	own, most := v.pod.Spec.TerminationGracePeriodSeconds, int64(v.Grace/time.Second)
	if own != nil && v.Grace > 0 && most < *own {
		return &most
	}
	return own
}
