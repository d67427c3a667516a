package reservation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/validation"
	"github.com/paddock-scheduler/paddock/pkg/plugins/process"
)

// Name is the name of the plugin in a scheduler configuration.
const Name = "NodeReservation"

// Plugin takes and gives back quota.
type Plugin struct {
	process *process.Process
}

var (
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PermitPlugin      = &Plugin{}
	_ fwk.PostBindPlugin    = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
)

// New makes the plugin.
func New(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.NodeReservationArgs)
	if !ok {
		return nil, fmt.Errorf("plugin %s: arguments are %T, want NodeReservationArgs", Name, obj)
	}
	if err := validation.ValidateNodeReservationArgs(nil, args); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &Plugin{process: process.For(ctx, h)}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// EventsToRegister registers nothing: the store brings a refused pod back.
func (*Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// SignPod adds nothing to the signature that batching compares: as long as no
// node is held, the filter treats all pods alike.
func (*Plugin) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

// Filter lets every pod pass: no node is held yet.
func (*Plugin) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	return nil
}

// Reserve charges a pod of a queue. Its verdict, on the live state, is binding.
func (pl *Plugin) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if pl.process.Store() == nil {
		return fwk.AsStatus(process.ErrNoStore)
	}
	if !pl.process.Managed(pod.Spec.SchedulerName) {
		return nil
	}
	if v := pl.process.Store().Assume(pod.UID, node, pl.process.Clock.Now()); !v.OK() {
		return fwk.NewStatus(fwk.Unschedulable, v.Reason.String())
	}
	return nil
}

// Unreserve gives back what Reserve took; it may be called again, and for a
// pod that was never reserved.
func (pl *Plugin) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	if pl.process.Managed(pod.Spec.SchedulerName) {
		pl.process.Store().Forget(pod.UID, pl.process.Clock.Now())
	}
}

// Permit refuses a pod whose queues were changed since Reserve so that it does
// not fit any more. It never waits.
func (pl *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	if !pl.process.Managed(pod.Spec.SchedulerName) {
		return nil, 0
	}
	if v := pl.process.Store().Recheck(pod.UID); !v.OK() {
		return fwk.NewStatus(fwk.Unschedulable, v.Reason.String()), 0
	}
	return nil, 0
}

// PostBind has nothing to do: the informer confirms the bind.
func (*Plugin) PostBind(context.Context, fwk.CycleState, *corev1.Pod, string) {}
