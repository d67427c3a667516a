package conditions

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// BeyondQuota returns the quota that a pod without a node exceeds, so that a new node
// would not let the pod run. It returns no reason for every other pod.
type BeyondQuota func(pod types.UID) reasons.Reason

// FailureHandler is the type of the scheduler's field of this name. The scheduler calls
// it when a scheduling cycle fails.
type FailureHandler = func(context.Context, framework.Framework, *framework.QueuedPodInfo, *fwk.Status, *fwk.NominatingInfo, time.Time)

// Correct wraps the failure handler of a scheduler. For pods that exceed a quota, the new
// handler writes a condition for which autoscalers add no node. It changes nothing else.
func Correct(next FailureHandler, client kubernetes.Interface, beyond BeyondQuota) FailureHandler {
	return func(
		ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo,
		status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time,
	) {
		why := beyond(pod.Pod.UID)
		if !why.None() {
			f = corrected{Framework: f, cacher: cacher{APICacher: f.APICacher(), client: client, why: why}}
		}
		next(ctx, f, pod, status, nominating, start)
	}
}

// suffix returns what is added to the message of the cycle. It contains no amounts: they change with
// the usage of other pods, and each change would cost a write and an event per cycle of
// each waiting pod.
func suffix(why reasons.Reason) string {
	return "; " + objects.BeyondMessage + string(why.Code) + ", see condition " + reasons.AdmittedCondition
}

// corrected is the framework of one failed cycle of a pod that exceeds a quota.
type corrected struct {
	framework.Framework
	cacher cacher
}

// APICacher returns the cacher through which the scheduler writes the status of the pod.
func (c corrected) APICacher() fwk.APICacher { return c.cacher }

// cacher writes the status of a pod through the scheduler's own cacher. That one is nil
// where feature SchedulerAsyncAPICalls is off: then cacher writes at once, as the
// scheduler does.
type cacher struct {
	fwk.APICacher
	client kubernetes.Interface
	why    reasons.Reason
}

// PatchPodStatus writes a condition, and replaces the reason Unschedulable.
func (c cacher) PatchPodStatus(pod *corev1.Pod, condition *corev1.PodCondition, nominating *fwk.NominatingInfo) (<-chan error, error) {
	if condition != nil && condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
		other := *condition
		other.Reason = corev1.PodReasonSchedulingGated
		other.Message += suffix(c.why)
		condition = &other
	}
	if c.APICacher != nil {
		return c.APICacher.PatchPodStatus(pod, condition, nominating)
	}
	status := pod.Status.DeepCopy()
	changed := condition != nil && podutil.UpdatePodCondition(status, condition)
	if nominating.Mode() == fwk.ModeOverride && status.NominatedNodeName != nominating.NominatedNodeName {
		status.NominatedNodeName, changed = nominating.NominatedNodeName, true
	}
	if !changed {
		return nil, nil
	}
	return nil, util.PatchPodStatus(context.Background(), c.client, pod.Name, pod.Namespace, &pod.Status, status)
}
