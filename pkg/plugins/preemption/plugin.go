package preemption

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/validation"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/plugins/process"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Name is the name of the plugin in a scheduler configuration.
const Name = "QueuePreemption"

// Plugin gives the quota verdict at the beginning of a cycle.
type Plugin struct {
	process *process.Process
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.PostFilterPlugin  = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
)

// New makes the plugin.
func New(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.QueuePreemptionArgs)
	if !ok {
		return nil, fmt.Errorf("plugin %s: arguments are %T, want QueuePreemptionArgs", Name, obj)
	}
	if err := validation.ValidateQueuePreemptionArgs(nil, args); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &Plugin{process: process.For(ctx, h)}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// EventsToRegister registers nothing: the store brings a refused pod back.
func (*Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// stateKey is where PreFilter leaves a refusal for PostFilter.
const stateKey = "PreFilter" + Name

// refusal marks a cycle that ended with the quota verdict.
type refusal struct{}

// Clone returns the mark; it has no content.
func (r refusal) Clone() fwk.StateData { return r }

// PreFilter refuses a pod of a queue that is over its quota.
func (pl *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if pl.process.Store() == nil {
		return nil, fwk.AsStatus(process.ErrNoStore)
	}
	if !pl.process.Managed(pod.Spec.SchedulerName) {
		return nil, nil
	}
	s := pl.process.Store()
	_, verdict, _ := s.Judge(pod.UID, s.Snapshot())
	if verdict.OK() {
		return nil, nil
	}
	state.Write(stateKey, refusal{})
	s.Refused(pod.UID, pl.process.Clock.Now())
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, verdict.Reason.String())
}

// PreFilterExtensions returns nil: removing pods from a node does not change
// the quota verdict of the cycle.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// PostFilter notes that no node took the pod, so that others have its place in
// the window. It makes no room.
func (pl *Plugin) PostFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if !pl.process.Managed(pod.Spec.SchedulerName) {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	if _, err := state.Read(stateKey); errors.Is(err, fwk.ErrNotFound) {
		pl.process.Store().Failed(pod.UID, informer.Kind(pod), reasons.New(reasons.NoNodeFits, "no node could take the pod"), pl.process.Clock.Now())
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}
