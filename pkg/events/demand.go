package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
)

// tellDemand writes the reason of condition PodScheduled. Cluster autoscalers add nodes for
// pods with reason Unschedulable and for no others, so a pod that a quota keeps from running
// on any node has SchedulingGated. The patch names the resource version: if the pod has
// changed, for instance was bound, the API server returns a conflict, and the report is tried
// again with the new pod.
func (r *Reporter) tellDemand(ctx context.Context, pod *corev1.Pod, report output.Report) error {
	if pod.Spec.NodeName != "" {
		return nil
	}
	reason, message := corev1.PodReasonUnschedulable, report.Reason.Text
	if report.Demand == objects.DemandBeyond {
		reason, message = corev1.PodReasonSchedulingGated, objects.BeyondMessage+report.Reason.Advice()
	}
	// The message of the cycle says more than the one here, and that of the API server says less.
	if c := informer.Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason == reason &&
		(report.Demand != objects.DemandBeyond || strings.Contains(c.Message, objects.BeyondMessage)) {
		return nil
	}
	_, err := r.patch(ctx, pod, map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion}, map[string]any{
		"type": corev1.PodScheduled, "status": corev1.ConditionFalse, "reason": reason, "message": message,
	})
	return err
}

// patch writes a condition of a pod. It is false where the pod is gone. A conflict is an
// error like others: the API server gives it for a pod of another UID or version, and for
// one of the same UID that was changed five times during the patch.
func (r *Reporter) patch(ctx context.Context, pod *corev1.Pod, metadata, condition map[string]any) (written bool, err error) {
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return false, fmt.Errorf("encode the condition %s of pod %s/%s: %w", condition["type"], pod.Namespace, pod.Name, err)
	}
	_, err = r.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("patch the condition %s of pod %s/%s: %w", condition["type"], pod.Namespace, pod.Name, err)
	}
	return true, nil
}
