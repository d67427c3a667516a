package preemption

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// makeRoomNodeBound plans for a DaemonSet pod on the one node that it can run on, and puts
// the decision into force. It considers no other node. It returns the node if it is held
// for the pod from then on, and the text for people.
func (pl *Plugin) makeRoomNodeBound(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (string, reasons.Reason) {
	s := pl.process.Store()
	input, why := s.BeginNodeBoundPlan(pod.UID, app.InPermit(pl.handle), pl.process.Clock.Now())
	if input == nil {
		return "", why
	}
	t := pl.newNodeBoundTrial(ctx, state, pod, input)
	input.Params.Fits = func(without []*planner.Pod) planner.Fit { return t.fits(ctx, without) }
	began := pl.process.Clock.Now()
	d := t.extenders.addToNodeBound(daemonset.Plan(input.Node, input.Ask, input.Params))
	metrics.Planned(record.NodeBound, pl.process.Clock.Since(began))
	klog.FromContext(ctx).V(3).Info("Decided about the node a pod requires", "pod", klog.KObj(pod), "decision", d.String(), "filterCalls", d.FitsCalls)
	held, why := s.ApplyPlan(pod.UID, &d, pl.process.Clock.Now())
	if !held {
		return "", why
	}
	return d.Node, why
}

// nodeBoundTrial runs the scheduler's own filters for the node that a pod requires,
// without some of its pods. The node is in the state in which the pods that leave it are
// gone and the holders before the pod are placed.
type nodeBoundTrial struct {
	handle fwk.Handle
	pod    *corev1.Pod
	state  fwk.CycleState
	// info is nil if the node is gone or cannot be brought into this state, or if another
	// plugin refused the pod at PreFilter. The Filter of that plugin has no state then, and
	// may pass.
	info fwk.NodeInfo
	// leaving are the pods that leave the node, as the scheduler has them.
	leaving   []*corev1.Pod
	budgets   []int64
	extenders *extenders
}

// newNodeBoundTrial prepares the node, and adds to the store's data of it what only the
// scheduler knows: pods assumed there.
func (pl *Plugin) newNodeBoundTrial(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, in *output.NodeBoundPlanInput) *nodeBoundTrial {
	t := &nodeBoundTrial{
		handle:    pl.handle,
		pod:       pod,
		state:     state.Clone(),
		budgets:   in.Node.Budgets,
		extenders: newExtenders(pl.handle, pod),
	}
	if _, ok := verdictOf(state); !ok {
		return t
	}
	info, err := pl.nodeInfo(in.Node.Name)
	if err != nil {
		return t // it was deleted since the cycle began
	}
	t.info = info
	t.state.Write(reservation.PlanningKey, reservation.Planning{})
	gone := pl.addAssumed(in, info)
	for _, p := range in.Node.Pods {
		if p.Protection == planner.Leaving {
			gone[types.UID(p.UID)] = true
		}
	}
	for _, pi := range info.GetPods() {
		if gone[pi.GetPod().UID] && pl.exists(pi.GetPod()) {
			t.leaving = append(t.leaving, pi.GetPod())
		}
	}
	_, ok := remove(ctx, t.handle, t.state, pod, info, func(p *corev1.Pod) bool { return gone[p.UID] })
	if !ok || !pl.addBefore(ctx, t, in) {
		t.info = nil
	}
	return t
}

// addAssumed adds to the input the pods that the scheduler has on the node and the store
// does not: they were assumed there and are not bound yet. It returns the pods that the
// scheduler still has and that are gone.
func (pl *Plugin) addAssumed(in *output.NodeBoundPlanInput, info fwk.NodeInfo) map[types.UID]bool {
	known := uidsOf(in.Node.Pods)
	gone := map[types.UID]bool{}
	for _, pi := range info.GetPods() {
		pod := pi.GetPod()
		if known[pod.UID] {
			continue
		}
		if !pl.exists(pod) {
			gone[pod.UID] = true
			continue
		}
		in.Node.Pods = append(in.Node.Pods, &planner.Pod{
			UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Protection: planner.Binding,
			Request: pl.amounts(pod, in.Node.Types),
		})
		if i := slices.IndexFunc(in.Before, func(r objects.Ref) bool { return r.UID == pod.UID }); i >= 0 {
			in.Before, in.Node.Before = slices.Delete(in.Before, i, i+1), slices.Delete(in.Node.Before, i, i+1)
		}
	}
	return gone
}

// exists reports whether a pod exists, as far as is known, and uses resources.
func (pl *Plugin) exists(pod *corev1.Pod) bool {
	now := informer.Find(pl.pods, informer.RefOf(pod))
	return now != nil && !informer.Ended(now)
}

// amounts returns what a pod requests of each type.
func (pl *Plugin) amounts(pod *corev1.Pod, kinds []string) planner.Amounts {
	request := informer.Requests(pod, app.Requests())
	out := make(planner.Amounts, len(kinds))
	for i, kind := range kinds {
		out[i] = int64(request.Get(kind))
	}
	return out
}

// addBefore places the holders that are served before the pod. It returns false if the
// filters do not support it.
func (pl *Plugin) addBefore(ctx context.Context, t *nodeBoundTrial, in *output.NodeBoundPlanInput) bool {
	for _, ref := range in.Before {
		pod := informer.Find(pl.pods, ref)
		if pod == nil {
			continue // it is gone; an event for the store follows
		}
		pi, err := framework.NewPodInfo(pod)
		if err != nil {
			return false
		}
		t.info.AddPodInfo(pi)
		if !t.handle.RunPreFilterExtensionAddPod(ctx, t.state, t.pod, pi, t.info).IsSuccess() {
			return false
		}
	}
	return true
}

// fits reports whether the filters and the extenders accept once the given pods are gone,
// too. Pods nominated to the node do not count, because this pod comes before them.
func (t *nodeBoundTrial) fits(ctx context.Context, without []*planner.Pod) planner.Fit {
	if t.info == nil {
		return planner.Never
	}
	info, state := t.info, t.state
	going := t.extenders.newRemoval(without, t.budgets)
	going.pods = slices.Clone(t.leaving)
	if len(without) > 0 {
		info, state = t.info.Snapshot(), t.state.Clone()
		gone := uidsOf(without)
		victims, ok := remove(ctx, t.handle, state, t.pod, info, func(p *corev1.Pod) bool { return gone[p.UID] })
		if !ok {
			return planner.Fails
		}
		going.pods = append(going.pods, victims...)
	}
	return t.extenders.afterFilters(ctx, t.handle.RunFilterPlugins(ctx, state, t.pod, info), info, going)
}
