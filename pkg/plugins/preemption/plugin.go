package preemption

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/validation"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// Name is the name of the plugin in a scheduler configuration.
const Name = "QueuePreemption"

// Plugin checks the quota at the beginning of a cycle, and plans preemption if no node
// takes a pod.
type Plugin struct {
	process     *app.Process
	handle      fwk.Handle
	pods        corelisters.PodLister
	nodeLister  corelisters.NodeLister
	postFilters *app.PostFilters
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.PostFilterPlugin  = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
)

// New returns the plugin.
func New(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.QueuePreemptionArgs)
	if !ok {
		return nil, fmt.Errorf("plugin %s: arguments are %T, want QueuePreemptionArgs", Name, obj)
	}
	if err := validation.ValidateQueuePreemptionArgs(args); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	p := app.For(ctx, h)
	if err := p.ConfigurePreemption(args); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	p.MakesRoom(h.ProfileName())
	core := h.SharedInformerFactory().Core().V1()
	return &Plugin{
		process: p, handle: h, pods: core.Pods().Lister(), nodeLister: core.Nodes().Lister(), postFilters: app.PostFiltersOf(h, Name),
	}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// EventsToRegister registers no events: the store requeues a rejected pod.
func (*Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// stateKey is the key under which PreFilter passes its verdict to PostFilter.
const stateKey = "PreFilter" + Name

// verdict is the verdict of PreFilter. A cycle without one ended before, because another
// plugin refused the pod at PreFilter: ours is the last there.
type verdict struct{ overQuota bool }

// Clone returns the verdict, which does not change.
func (v verdict) Clone() fwk.StateData { return v }

// verdictOf returns the verdict of the cycle. ok is false if there is none.
func verdictOf(state fwk.CycleState) (v verdict, ok bool) {
	if data, err := state.Read(stateKey); err == nil {
		v, ok = data.(verdict)
	}
	return v, ok
}

// PreFilter rejects a pod of a queue that is over its quota.
func (pl *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	s := pl.process.Store()
	if s == nil {
		return nil, fwk.AsStatus(app.ErrNoStore)
	}
	pl.dropOtherNominations(s, pod)
	state.Write(stateKey, verdict{})
	if !pl.process.Managed(pod.Spec.SchedulerName) {
		return nil, nil
	}
	v := s.CheckQuota(pod.UID)
	if v.OK() {
		return nil, nil
	}
	state.Write(stateKey, verdict{overQuota: true})
	s.QuotaRefused(pod.UID, pl.process.Clock.Now())
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, v.Reason.String())
}

// dropOtherNominations removes the nominations of the other holders of the pod's node. The
// scheduler's filters count pods nominated to a node as if they ran there, although they
// wait for victims of their own. The plans of the holders counted each other, and the hold, not
// the nomination, keeps the capacity. For a node-bound pod it removes all other
// nominations, because that pod comes before them.
func (pl *Plugin) dropOtherNominations(s *store.Store, pod *corev1.Pod) {
	holds := s.Holds()
	if !holds.Held() {
		return
	}
	h, ok := holds.Of(pod.UID)
	if ok && h.NodeBound {
		for _, pi := range pl.handle.NominatedPodsForNode(h.Node) {
			if other := pi.GetPod(); other.UID != pod.UID {
				pl.handle.DeleteNominatedPodIfExists(other)
			}
		}
		return
	}
	for _, h := range append(holds.Beside(pod.UID), holds.OfGroup(objects.GroupOf(pod.Namespace, pod.Labels))...) {
		if h.Asker == pod.UID {
			continue
		}
		other := objects.Ref{Namespace: h.Namespace, Name: h.Name, UID: h.Asker}
		pl.handle.DeleteNominatedPodIfExists(informer.Named(other))
	}
}

// PreFilterExtensions returns nil: removing pods from a node does not change the quota
// verdict of the cycle.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// PostFilter decides whether pods are preempted for a pod that no node took or that a
// quota rejected. It makes the plan; the executor carries it out. The status is for
// people: it names the law or gate that stopped the pod, or the victims that it waits
// for.
func (pl *Plugin) PostFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	result, status := pl.postFilter(ctx, state, pod, statuses)
	if pl.process.Managed(pod.Spec.SchedulerName) {
		status = pl.postFilters.End(state, pod, status)
	}
	return result, status
}

// postFilter makes the decision. PostFilter adapts its status to the plugins that follow.
func (pl *Plugin) postFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	s, requires := pl.process.Store(), pl.process.RequiredNode(pod) != ""
	if s == nil || !requires && !pl.process.Managed(pod.Spec.SchedulerName) {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	if refusedWithPodGroup(statuses) {
		s.Defer(pod.UID, reasons.New(reasons.BackingOff, "plugin %s refused to try the pod", app.PodGroupPlugin), pl.process.Clock.Now())
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	v, _ := verdictOf(state)
	filtersRan := !v.overQuota
	var node string
	var why reasons.Reason
	if requires {
		node, why = pl.makeRoomNodeBound(ctx, state, pod)
	} else {
		node, why = pl.makeRoom(ctx, state, pod, statuses, filtersRan)
	}
	if node != "" { // in the store it is Unschedulable
		return framework.NewPostFilterResultWithNominatedNode(node), fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why.String())
	}
	pl.report(pod, filtersRan, statuses, why)
	result, status := pl.rejection(pod, why)
	if !requires {
		return result, status
	}
	// No other plugin may preempt: upstream's preemption, which may come next, knows
	// neither holds nor protected pods (D4).
	if !isMakingRoom(why) {
		result = framework.NewPostFilterResultWithNominatedNode("")
	}
	return result, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, status.Message())
}

// refusedWithPodGroup reports whether the plugin for PodGroups ended the cycle before any node was
// checked. It does not requeue the pod when it may be tried.
func refusedWithPodGroup(statuses fwk.NodeToStatusReader) bool {
	return statuses != nil && statuses.Get("").Plugin() == app.PodGroupPlugin
}

// report reports to the store a cycle after which the pod holds no new node. The filters
// gave the statuses, if they ran. why is the reason for which no victims are chosen.
func (pl *Plugin) report(pod *corev1.Pod, filtersRan bool, statuses fwk.NodeToStatusReader, why reasons.Reason) {
	s, now := pl.process.Store(), pl.process.Clock.Now()
	switch {
	case !pl.process.Managed(pod.Spec.SchedulerName): // the scheduler's own events requeue it
	case !filtersRan || why.Code.IsQuota():
		s.QuotaRefused(pod.UID, now)
		return
	default:
		s.NoNode(pod.UID, informer.EquivalenceClass(pod), noNode(statuses, pl.nodeCount(), why), now)
	}
	pl.checkFreedPods(pod.UID, now)
}

// rejection returns what PostFilter answers for a pod that holds no new node.
func (pl *Plugin) rejection(pod *corev1.Pod, why reasons.Reason) (*fwk.PostFilterResult, *fwk.Status) {
	switch {
	case !pl.process.Managed(pod.Spec.SchedulerName):
		return nil, fwk.NewStatus(fwk.Unschedulable, why.String())
	case why.Code == reasons.PodGroupIncomplete: // PreFilter has reported it
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	held, code := pl.process.Store().Holds(), fwk.Unschedulable
	if _, holds := held.Of(pod.UID); holds && isMakingRoom(why) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why.String())
	}
	if why.Code == reasons.WaitingForRoom && len(held.OfGroup(objects.GroupOf(pod.Namespace, pod.Labels))) > 0 {
		// The plugin for PodGroups would take the places of the others back. Plans for other
		// members count on these places, and would be given up.
		code = fwk.UnschedulableAndUnresolvable
	}
	// No victims are chosen for the pod, so an earlier nomination is cleared.
	return framework.NewPostFilterResultWithNominatedNode(""), fwk.NewStatus(code, why.String())
}

// isMakingRoom reports whether the reason is that the pod gets its room from pods that leave.
func isMakingRoom(why reasons.Reason) bool {
	return why.Code == reasons.MakingRoom || why.Code == reasons.WaitingForRoom
}

// makeRoom plans for a pod and puts the plan into force. It returns the node that is held
// from then on, empty for none, and the text for people.
func (pl *Plugin) makeRoom(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader, filtersRan bool,
) (string, reasons.Reason) {
	s, now := pl.process.Store(), pl.process.Clock.Now()
	if h, ok := s.Holds().Of(pod.UID); ok {
		if why := pl.refusedBy(ctx, state, pod, &h); why != "" {
			s.NodeRefuses(pod.UID, h.Node, why, now)
		}
	}
	input, why := s.BeginPlan(pod.UID, informer.EquivalenceClass(pod), app.InPermit(pl.handle), now)
	if input == nil {
		return "", why
	}
	planning, params := *input.Snapshot, input.Params
	if filtersRan {
		planning.Nodes = candidates(&planning, statuses)
	} else { // most plans that the laws reject never need it
		list := sync.OnceValue(func() map[string]bool { return pl.rejectedAnyway(ctx, state, pod, planning.Nodes) })
		params.Barred = func(node string) bool { return list()[node] }
	}
	t := newTrial(pl.handle, state, pod, &planning, pl.exists)
	params.Fits = func(node string, without []*planner.Pod) planner.Fit { return t.fits(ctx, node, without) }
	began := pl.process.Clock.Now()
	d := search.Plan(&planning, input.Ask, params)
	metrics.Planned(record.Queue, pl.process.Clock.Since(began))
	d = t.extenders.addTo(d)
	klog.FromContext(ctx).V(3).Info("Planned preemption", "pod", klog.KObj(pod), "decision", d.String(),
		"filterCalls", d.FitsCalls, "exhaustive", d.Exhaustive, "kept", d.Kept())
	if d.Outcome != planner.Preempt {
		return "", s.RejectPlan(pod.UID, &d, now)
	}
	if why := s.AcceptPlan(pod.UID, &d, now); !why.None() {
		return "", why
	}
	return d.Node, s.Explain(pod.UID)
}
