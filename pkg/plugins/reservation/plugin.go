package reservation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/validation"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// Name is the name of the plugin in a scheduler configuration.
const Name = "NodeReservation"

// Plugin keeps pods off nodes that are held for others (Filter, Permit), and charges and
// releases quota (Reserve, Unreserve).
type Plugin struct {
	process *app.Process
	handle  fwk.Handle
}

var (
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PermitPlugin      = &Plugin{}
	_ fwk.PostBindPlugin    = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
)

// New returns the plugin.
func New(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.NodeReservationArgs)
	if !ok {
		return nil, fmt.Errorf("plugin %s: arguments are %T, want NodeReservationArgs", Name, obj)
	}
	if err := validation.ValidateNodeReservationArgs(args); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	p := app.For(ctx, h)
	if err := p.ConfigureReservation(args); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &Plugin{process: p, handle: h}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// EventsToRegister registers new nodes, because no hold blocks them, and nodes with another
// allocatable and pods that are gone, because a filter may have read a node of which the store has
// seen the change and the scheduler has not. The end of a hold is not a cluster event: the store
// requeues the pods that the hold kept off.
func (pl *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable}},
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}, QueueingHintFn: pl.mayFitBeside},
	}, nil
}

// mayFitBeside queues a pod when another one leaves a node where holders keep only their requests.
func (pl *Plugin) mayFitBeside(_ klog.Logger, pod *corev1.Pod, gone, _ any) (fwk.QueueingHint, error) {
	s := pl.process.Store()
	left, ok := gone.(*corev1.Pod)
	if s == nil || !ok {
		return fwk.QueueSkip, nil
	}
	holds, node := s.Holds(), left.Spec.NodeName
	if len(holds.RequestOnly(node)) > 0 && len(holds.Keeping(node, pl.inHolds(pod, node))) > 0 {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// SignPod refuses to sign while any node is held or a node-bound pod goes first on its node: Filter
// then depends on the identity of the pod, so the result for one pod is not valid for another. Else
// Filter treats all pods alike.
func (pl *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if s := pl.process.Store(); s != nil && (s.Holds().Held() || s.AnyNodeBound()) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "nodes are held, or pods go first that can run on one node only")
	}
	return nil, nil
}

// PlanningKey marks a cycle state as that of a plan. A plan may join the holders of a
// node, because it counts the pods that they wait for. A plan for a node-bound pod may
// join any holders.
const PlanningKey = "Planning" + Name

// Planning is the mark of the cycle state of a plan.
type Planning struct{}

// Clone returns the mark, which has no content.
func (p Planning) Clone() fwk.StateData { return p }

// Filter keeps pods off nodes that are held for other pods, and keeps pods that hold a
// node off all other nodes. It rejects with UnschedulableAndUnresolvable, because no pod
// must be preempted for such a node.
func (pl *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	s := pl.process.Store()
	if s == nil {
		return nil
	}
	pl.process.AwaitHolds(ctx)
	return checkTwice(s, func(holds *reservations.View) *fwk.Status {
		first := goFirst(s, node)
		if len(first) == 0 && !holds.Concerns(node.Node().Name, pod.UID) {
			return nil
		}
		_, err := state.Read(PlanningKey)
		p, plan := pl.inHolds(pod, node.Node().Name), err == nil
		if plan && p.Required {
			return nil // its plan counts the holders that are before it
		}
		if status := pl.checkHolds(holds, p, pod, node.Node().Name, plan); status != nil {
			return status
		}
		return pl.besideOthers(holds, p, pod, node, first)
	})
}

// checkNow is [Plugin.checkHolds] outside of Filter.
func (pl *Plugin) checkNow(pod *corev1.Pod, node string) *fwk.Status {
	return checkTwice(pl.process.Store(), func(holds *reservations.View) *fwk.Status {
		return pl.checkHolds(holds, pl.inHolds(pod, node), pod, node, false)
	})
}

// checkHolds returns nil if the holds let a pod use a node, and else the reason. For a plan, it also
// returns nil if the pod may join the holders of the node.
func (pl *Plugin) checkHolds(holds *reservations.View, p reservations.Pod, pod *corev1.Pod, node string, plan bool) *fwk.Status {
	pass := holds.MayUse(node, p)
	if plan {
		pass = holds.MayJoin(node, pod.UID)
	}
	if pass.OK {
		return nil
	}
	h := pass.Holder
	if h.Asker == pod.UID {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasons.New(reasons.NodeHeld,
			"the pod waits for node %s, which is held for it", h.Node).String())
	}
	return pl.keptFor(pod, "node %s is held for pod %s/%s", h.Node, h.Namespace, h.Name)
}

// inHolds is what the holds know of a pod that may use a node.
func (pl *Plugin) inHolds(pod *corev1.Pod, node string) reservations.Pod {
	return reservations.Pod{
		UID: pod.UID, Namespace: pod.Namespace, Group: objects.GroupOf(pod.Namespace, pod.Labels),
		Required: pl.process.RequiredNode(pod) == node,
	}
}

// Reserve charges a pod of a queue. Its verdict on the live state is binding.
func (pl *Plugin) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	s := pl.process.Store()
	if s == nil {
		return fwk.AsStatus(app.ErrNoStore)
	}
	if !pl.process.Managed(pod.Spec.SchedulerName) {
		return nil
	}
	// The pod may have held the node when the filters ran; now other holders are next.
	if status := pl.checkNow(pod, node); !status.IsSuccess() {
		s.Defer(pod.UID, reasons.New(reasons.NodeHeld, "node %s is held for others", node), pl.process.Clock.Now())
		return status
	}
	if v := s.Assume(pod.UID, node, pl.podsSeen(node), pl.process.Clock.Now()); !v.OK() {
		return fwk.NewStatus(fwk.Unschedulable, v.Reason.String())
	}
	return nil
}

// podsSeen returns the number of pods that the cycle's snapshot has on a node;
// [store.NoSnapshot] if the snapshot lacks the node.
func (pl *Plugin) podsSeen(node string) int {
	info, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return store.NoSnapshot
	}
	return len(info.GetPods())
}

// Unreserve releases what Reserve charged. It may be called repeatedly, and for a pod
// that was never reserved.
func (pl *Plugin) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	if pl.process.Managed(pod.Spec.SchedulerName) {
		pl.process.Store().Forget(pod.UID, pl.process.Clock.Now())
	}
}

// Permit rejects a pod if its node became held for other pods since Reserve. It never waits.
func (pl *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	if !pl.process.Managed(pod.Spec.SchedulerName) {
		return nil, 0
	}
	return pl.checkNow(pod, node), 0
}

// PostBind does nothing: the informer confirms the bind. Configurations list the plugin here, and the
// framework refuses one that lists a plugin at a point that it does not extend.
func (*Plugin) PostBind(context.Context, fwk.CycleState, *corev1.Pod, string) {}
