package evict

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// refusedForRoom is the prefix of the status reasons that a kubelet gives to pods that it
// refuses because its node has no capacity for them: OutOfcpu, OutOfmemory, OutOfpods,
// and so on.
const refusedForRoom = "OutOf"

// inquire reads how an asker ended, because the informer has no failed pods. An asker
// that no longer exists, or about which the API server gives no answer, counts as not
// refused.
func (e *Executor) inquire(ctx context.Context, a *asker, w *output.Work) error {
	var pod *corev1.Pod
	err := e.call(ctx, func(ctx context.Context) (err error) {
		pod, err = e.Client.CoreV1().Pods(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		return e.orGone(ctx, w.Ref, err)
	})
	if err != nil && e.noteFailure(ctx, a, w, err) {
		return err
	}
	reason := ""
	if err == nil && pod.UID == w.UID && pod.Status.Phase == corev1.PodFailed &&
		strings.HasPrefix(pod.Status.Reason, refusedForRoom) {
		reason = pod.Status.Reason
	}
	e.done(a, w)
	if why := e.Store.KubeletRefused(w.UID, reason, e.Clock.Now()); !why.None() {
		e.Logger.V(2).Info("The kubelet refused a pod for which room was made", "pod", ref(w.Ref), "node", w.Hold.Node, "reason", reason)
		e.Recorder(pod.Spec.SchedulerName).Eventf(pod, nil, corev1.EventTypeWarning,
			string(why.Code), "Preempting", "%s", why.Advice())
	}
	return nil
}
