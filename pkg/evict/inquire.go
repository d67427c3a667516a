package evict

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// refusedForRoom is how the status reasons begin that a kubelet gives pods which it refuses
// because its node has no room for them: OutOfcpu, OutOfmemory, OutOfpods, and so on.
const refusedForRoom = "OutOf"

// inquire looks how an asker ended: the informer has no pods that failed. An asker that is
// not there any more, or of which the API server does not say, counts as one that was not
// refused.
func (e *Executor) inquire(ctx context.Context, w store.Work) {
	var pod *corev1.Pod
	err := e.persist(ctx, func(ctx context.Context) (err error) {
		pod, err = e.Client.CoreV1().Pods(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		return e.meaning(ctx, w.Ref, err)
	})
	reason := ""
	if err == nil && pod.UID == w.UID && pod.Status.Phase == corev1.PodFailed && strings.HasPrefix(pod.Status.Reason, refusedForRoom) {
		reason = pod.Status.Reason
	}
	if why := e.Store.KubeletRefused(w.UID, reason, e.Clock.Now()); !why.None() {
		e.Logger.V(2).Info("The kubelet refused a pod for which room was made", "pod", ref(w.Ref), "node", w.Hold.Node, "reason", reason)
		e.warn(pod, why)
	}
}
