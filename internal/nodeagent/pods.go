package nodeagent

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

func (a *Agent) podSeen(o any) {
	pod := o.(*corev1.Pod)
	a.ledger.observe(pod, time.Now())
	a.podQueue.Add(podKey(pod))
}

func (a *Agent) podChanged(old, o any) {
	if before := old.(*corev1.Pod); before.UID != o.(*corev1.Pod).UID {
		// The watch was interrupted and another pod has the name now.
		a.podGone(before)
	}
	a.podSeen(o)
}

func (a *Agent) podGone(o any) {
	if pod, ok := deleted[*corev1.Pod](o); ok {
		a.ledger.forget(pod.UID)
	}
}

// reconcilePod does the next step of one pod.
func (a *Agent) reconcilePod(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/") // see podKey
	pod, err := a.pods.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up pod %s: %w", key, err)
	}
	if err := a.admitWaiting(ctx, pod.Spec.NodeName); err != nil {
		return err
	}
	v, known := a.ledger.verdict(pod.UID)
	if !known {
		return nil
	}
	s, bad := parseScript(pod.Annotations)
	next := nextStep(pod, v.where, s, v.deletedAt, time.Now())
	if bad != nil && next.do == doStart {
		klog.FromContext(ctx).Error(bad, "annotation is ignored", "pod", key)
	}
	if next.wait > 0 {
		a.podQueue.AddAfter(key, next.wait)
	}
	return a.perform(ctx, pod, v, next.do)
}

// admitWaiting makes a node decide about its waiting pods. Before it rejects one it reads the
// node again, because its resources or labels may just have changed.
func (a *Agent) admitWaiting(ctx context.Context, node string) error {
	done, _ := a.ledger.admitWaiting(node, false)
	if done {
		return nil
	}
	fresh, err := a.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the watch will show the change, too
	}
	if err != nil {
		return fmt.Errorf("read node %s: %w", node, err)
	}
	for _, key := range a.ledger.setNode(fresh) {
		a.podQueue.Add(key)
	}
	_, refusals := a.ledger.admitWaiting(node, true)
	for _, e := range refusals {
		klog.FromContext(ctx).Info("pod refused", "pod", podKey(e.pod), "node", node, "reason", e.refusal.reason, "message", e.refusal.message)
		a.podQueue.Add(podKey(e.pod))
	}
	return nil
}

// perform writes one step.
func (a *Agent) perform(ctx context.Context, pod *corev1.Pod, v entry, do action) error {
	now := time.Now()
	switch do {
	case doNothing:
		return nil
	case doStart:
		return a.write(ctx, pod, runningStatus(pod, a.address(), now))
	case doReject:
		return a.write(ctx, pod, rejectedStatus(v.refusal, now))
	case doSucceed:
		return a.write(ctx, pod, endedStatus(pod, 0, now))
	case doTerminate:
		if err := a.write(ctx, pod, lastStatus(pod, v, now)); err != nil {
			return err
		}
		return a.remove(ctx, pod)
	case doRemove:
		return a.remove(ctx, pod)
	default:
		return fmt.Errorf("pod %s: unknown action %d", podKey(pod), do)
	}
}

// lastStatus is the terminal status of a pod that is being deleted.
func lastStatus(pod *corev1.Pod, v entry, now time.Time) corev1.PodStatus {
	switch {
	case v.where == refused:
		return rejectedStatus(v.refusal, now)
	case started(pod):
		return endedStatus(pod, exitKilled, now)
	default:
		return corev1.PodStatus{Phase: corev1.PodFailed} // deleted before its node took it
	}
}

// write patches the status of exactly this pod. A pod that is gone or replaced by another
// one of its name is no error.
func (a *Agent) write(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	data, err := statusPatch(pod.UID, status)
	if err != nil {
		return err
	}
	_, err = a.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patch status of pod %s: %w", podKey(pod), err)
	}
	return nil
}

// remove deletes exactly this pod for good.
func (a *Agent) remove(ctx context.Context, pod *corev1.Pod) error {
	err := a.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete pod %s: %w", podKey(pod), err)
	}
	return nil
}
