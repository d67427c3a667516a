package preemption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/validation"
	"github.com/paddock-scheduler/paddock/pkg/leader"
)

// Name is the name of the plugin in a KubeSchedulerConfiguration.
const Name = "QueuePreemption"

// QueuePreemption is the plugin. Make one with a factory from New.
type QueuePreemption struct {
	args   *config.QueuePreemptionArgs
	leader *leader.Gate
}

var (
	_ fwk.PreFilterPlugin  = &QueuePreemption{}
	_ fwk.PostFilterPlugin = &QueuePreemption{}
)

// New returns the factory of the plugin, for one process: gate says whether that
// process holds the lease. The factory fails if the arguments are of another
// type or invalid.
func New(gate *leader.Gate) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		args, ok := obj.(*config.QueuePreemptionArgs)
		if !ok {
			return nil, fmt.Errorf("arguments of %s are %T, want %T", Name, obj, args)
		}
		if err := validation.ValidateQueuePreemptionArgs(nil, args); err != nil {
			return nil, fmt.Errorf("arguments of %s: %w", Name, err)
		}
		return &QueuePreemption{args: args, leader: gate}, nil
	}
}

// Name returns the name of the plugin.
func (p *QueuePreemption) Name() string { return Name }

// PreFilter lets every pod pass.
func (p *QueuePreemption) PreFilter(
	context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo,
) (*fwk.PreFilterResult, *fwk.Status) {
	return nil, nil
}

// PreFilterExtensions returns nil: there is no state to keep up to date.
func (p *QueuePreemption) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// PostFilter finds no victims.
func (p *QueuePreemption) PostFilter(
	context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	return nil, fwk.NewStatus(fwk.Unschedulable, "no victims")
}
