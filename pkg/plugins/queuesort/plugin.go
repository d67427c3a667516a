package queuesort

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/validation"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// Name is the name of the plugin in a scheduler configuration.
const Name = "QueueSort"

// Plugin orders the scheduler's queue. The scheduler uses the instance of its
// first profile for all of them, so it also orders pods that are in no queue,
// exactly as upstream would.
type Plugin struct {
	process *app.Process
}

var (
	_ fwk.QueueSortPlugin   = &Plugin{}
	_ fwk.PreEnqueuePlugin  = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
)

// New makes the plugin and, with the first instance of a scheduler, the store.
func New(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.QueueSortArgs)
	if !ok {
		return nil, fmt.Errorf("plugin %s: arguments are %T, want QueueSortArgs", Name, obj)
	}
	if err := validation.ValidateQueueSortArgs(args); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	p := app.For(ctx, h)
	if err := p.Configure(ctx, h, args); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &Plugin{process: p}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// EventsToRegister registers nothing: only the store lets a pod through. Each event
// registered here would run PreEnqueue for every pod behind the gate.
func (*Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// PreEnqueue keeps pods of queues out of the scheduler's queue until they have a slot, and
// DaemonSet pods of other profiles while their victims leave. It is called under the lock
// of the scheduler's queue.
func (pl *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if !pl.process.Managed(pod.Spec.SchedulerName) {
		return pl.gateForeign(pod)
	}
	if why := pl.process.Store().Gate(pod.UID, pl.process.Clock.Now()); !why.None() {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why.String())
	}
	return nil
}

// gateForeign is PreEnqueue for a pod of no queue. It works without a store, and for pods
// that the store does not know yet.
func (pl *Plugin) gateForeign(pod *corev1.Pod) *fwk.Status {
	s := pl.process.Store()
	if s == nil || pl.process.RequiredNode(pod) == "" {
		return nil
	}
	if why := s.Gate(pod.UID, pl.process.Clock.Now()); why.Code == reasons.MakingRoom {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why.String())
	}
	return nil
}

// Less is a strict total order of all pods: higher rank, earlier time, earlier
// admission, UID. Pods of queues have a key that was frozen when they were let
// through; the others have upstream's, priority and time of queueing. It is
// called under the lock of the scheduler's queue and waits for no lock itself.
func (pl *Plugin) Less(a, b fwk.QueuedPodInfo) bool {
	s := pl.process.Store()
	ka, kb := key(s, a), key(s, b)
	// The fields are compared one by one, so that only those that decide are loaded: Less is
	// called about twenty times for each pod that is taken out of a full window.
	switch {
	case ka.Rank != kb.Rank:
		return ka.Rank > kb.Rank
	case ka.Time != kb.Time:
		return ka.Time < kb.Time
	case ka.Seq != kb.Seq:
		return ka.Seq < kb.Seq
	}
	return a.GetPodInfo().GetPod().UID < b.GetPodInfo().GetPod().UID
}

// key returns the key that the store gave the pod, and for a pod without one its priority
// and the time at which it entered the queue.
func key(s *store.Store, q fwk.QueuedPodInfo) store.Key {
	pod := q.GetPodInfo().GetPod()
	if k, ok := s.Key(pod.UID); ok {
		return k
	}
	return store.Key{Rank: int64(ptr.Deref(pod.Spec.Priority, 0)), Time: q.GetTimestamp().UnixNano()}
}
