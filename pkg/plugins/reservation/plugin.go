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
	"github.com/paddock-scheduler/paddock/pkg/leader"
)

// Name is the name of the plugin in a KubeSchedulerConfiguration.
const Name = "NodeReservation"

// NodeReservation is the plugin. Make one with a factory from New. It has no
// PreFilter: one that answered Skip would turn Filter off.
type NodeReservation struct {
	args   *config.NodeReservationArgs
	leader *leader.Gate
}

var (
	_ fwk.FilterPlugin   = &NodeReservation{}
	_ fwk.ReservePlugin  = &NodeReservation{}
	_ fwk.PermitPlugin   = &NodeReservation{}
	_ fwk.PostBindPlugin = &NodeReservation{}
)

// New returns the factory of the plugin, for one process: gate says whether that
// process holds the lease. The factory fails if the arguments are of another
// type or invalid.
func New(gate *leader.Gate) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		args, ok := obj.(*config.NodeReservationArgs)
		if !ok {
			return nil, fmt.Errorf("arguments of %s are %T, want %T", Name, obj, args)
		}
		if err := validation.ValidateNodeReservationArgs(nil, args); err != nil {
			return nil, fmt.Errorf("arguments of %s: %w", Name, err)
		}
		return &NodeReservation{args: args, leader: gate}, nil
	}
}

// Name returns the name of the plugin.
func (p *NodeReservation) Name() string { return Name }

// Filter passes every node: none is held.
func (p *NodeReservation) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	return nil
}

// Reserve accepts every pod.
func (p *NodeReservation) Reserve(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return nil
}

// Unreserve is the inverse of Reserve.
func (p *NodeReservation) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// Permit accepts every pod and never waits.
func (p *NodeReservation) Permit(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.Status, time.Duration) {
	return nil, 0
}

// PostBind does nothing: no hold can end here.
func (p *NodeReservation) PostBind(context.Context, fwk.CycleState, *corev1.Pod, string) {}
