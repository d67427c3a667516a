package queuesort

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/validation"
	"github.com/paddock-scheduler/paddock/pkg/leader"
)

// Name is the name of the plugin in a KubeSchedulerConfiguration.
const Name = "QueueSort"

// QueueSort is the plugin. Make one with a factory from New.
type QueueSort struct {
	args   *config.QueueSortArgs
	leader *leader.Gate
}

var (
	_ fwk.QueueSortPlugin  = &QueueSort{}
	_ fwk.PreEnqueuePlugin = &QueueSort{}
)

// New returns the factory of the plugin, for one process: gate says whether that
// process holds the lease. The factory fails if the arguments are of another
// type or invalid.
func New(gate *leader.Gate) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		args, ok := obj.(*config.QueueSortArgs)
		if !ok {
			return nil, fmt.Errorf("arguments of %s are %T, want %T", Name, obj, args)
		}
		if err := validation.ValidateQueueSortArgs(nil, args); err != nil {
			return nil, fmt.Errorf("arguments of %s: %w", Name, err)
		}
		return &QueueSort{args: args, leader: gate}, nil
	}
}

// Name returns the name of the plugin.
func (p *QueueSort) Name() string { return Name }

// Less orders by priority, then by the time the pod entered the queue: upstream's
// order.
func (p *QueueSort) Less(a, b fwk.QueuedPodInfo) bool {
	pa := corev1helpers.PodPriority(a.GetPodInfo().GetPod())
	pb := corev1helpers.PodPriority(b.GetPodInfo().GetPod())
	if pa != pb {
		return pa > pb
	}
	return a.GetTimestamp().Before(b.GetTimestamp())
}

// PreEnqueue admits every pod.
func (p *QueueSort) PreEnqueue(context.Context, *corev1.Pod) *fwk.Status { return nil }
