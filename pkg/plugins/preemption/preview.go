package preemption

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Previewer computes what would happen to a pod that does not exist. It calls the store,
// the filters on a snapshot of their own, and the planner, and has no side effects. Its
// caller makes one preview at a time.
type Previewer struct {
	process *app.Process
	stages  map[string]*stage // by profile
	first   string            // the profile of pods that name none
}

// neverLookedAt describes what no preview checks.
var neverLookedAt = []string{
	"admission: webhooks, LimitRanges, ResourceQuotas and policies may change or refuse the pod",
	"scores: which of the nodes that fit would be taken",
	"order: pods that wait now may take the room first",
}

// NewPreviewer makes a Previewer for the profiles with pods of queues. Registry has
// upstream's plugins, and placed is the scheduler's cache.
func NewPreviewer(
	ctx context.Context, cfg *schedconfig.KubeSchedulerConfiguration, profiles map[string]framework.Framework,
	registry frameworkruntime.Registry, placed Placed,
) (*Previewer, *app.Process, error) {
	pv := &Previewer{stages: map[string]*stage{}}
	for i := range cfg.Profiles {
		profile := &cfg.Profiles[i]
		h := profiles[profile.SchedulerName]
		if pv.process == nil {
			pv.process = app.For(ctx, h)
		}
		if !pv.process.Managed(profile.SchedulerName) {
			continue
		}
		s, err := newStage(ctx, profile, h, registry, placed)
		if err != nil {
			return nil, pv.process, err
		}
		if pv.stages[profile.SchedulerName] = s; pv.first == "" {
			pv.first = profile.SchedulerName
		}
	}
	if pv.first == "" {
		return nil, pv.process, fmt.Errorf("no profile has pods of queues")
	}
	return pv, pv.process, nil
}

// dryRun is one preview.
type dryRun struct {
	*Previewer
	stage    *stage
	pod      *corev1.Pod
	requires string // the only node on which a DaemonSet pod can run; empty for other pods
	state    fwk.CycleState
	r        *store.DryRun
	out      *documents.Preview
	// statuses are the statuses of the nodes that the filters rejected or that are held
	// for other pods.
	statuses map[string]*fwk.Status
	fit      []string
}

// Preview implements rest.Previewer.
func (pv *Previewer) Preview(ctx context.Context, manifest []byte) (*documents.Preview, error) {
	pod, err := parseManifest(manifest)
	if err != nil {
		return nil, err
	}
	out := &documents.Preview{Ref: objects.Ref{Namespace: pod.Namespace, Name: pod.Name}, NotLookedAt: slices.Clone(neverLookedAt)}
	s, err := pv.profileOf(pod, out)
	if err != nil {
		return nil, err
	}
	if err := pv.prioritize(pod, out); err != nil {
		return nil, err
	}
	out.NotLookedAt = append(out.NotLookedAt, setAside(pod)...)
	for _, name := range s.missing {
		out.NotLookedAt = append(out.NotLookedAt, "plugin "+name+", which cannot be asked about a pod that is not there")
	}
	event := informer.Translate(pod, app.Requests())
	event.RequiredNode = pv.process.RequiredNode(pod)
	out.Priority = event.Priority
	x := &dryRun{
		Previewer: pv,
		stage:     s,
		pod:       pod,
		requires:  event.RequiredNode,
		state:     framework.NewCycleState(),
		r:         pv.process.Store().DryRun(event, pv.process.Clock.Now()),
		out:       out,
		statuses:  map[string]*fwk.Status{},
	}
	out.Placed(x.r, event.Request)
	switch {
	case event.Gated:
		x.waits(reasons.Brief(reasons.SchedulingGated))
		return out, nil
	case !x.r.Unplaced.None():
		x.waits(x.r.Unplaced)
		return out, nil
	}
	defer s.dropSnapshot()
	s.takeSnapshot()
	if err := x.filter(ctx); err != nil {
		return nil, err
	}
	x.decide(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err // nothing after this comes from a filter
	}
	return out, nil
}

// profileOf returns the stage of the pod's profile.
func (pv *Previewer) profileOf(pod *corev1.Pod, out *documents.Preview) (*stage, error) {
	out.Profile = cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
	if pod.Spec.SchedulerName == "" && pv.stages[out.Profile] == nil {
		out.Profile = pv.first
		out.NotLookedAt = append(out.NotLookedAt, "spec.schedulerName: is not set; looked at as if it were "+pv.first)
	}
	s := pv.stages[out.Profile]
	if s == nil {
		return nil, wrong("spec.schedulerName: the pods of %q belong to no queue here; those of %s do",
			out.Profile, strings.Join(slices.Sorted(maps.Keys(pv.stages)), ", "))
	}
	pod.Spec.SchedulerName = out.Profile
	return s, nil
}

// prioritize sets the priority from the PriorityClass, as admission does.
func (pv *Previewer) prioritize(pod *corev1.Pod, out *documents.Preview) error {
	class, readable := pv.process.PriorityClass(pod.Spec.PriorityClassName)
	switch {
	case !readable:
		if pod.Spec.Priority == nil {
			out.NotLookedAt = append(out.NotLookedAt, "PriorityClasses, which the scheduler may not read: the priority counts as 0")
		}
	case class == nil && pod.Spec.PriorityClassName != "":
		return wrong("spec.priorityClassName: there is no PriorityClass %q", pod.Spec.PriorityClassName)
	case class != nil:
		pod.Spec.Priority, pod.Spec.PriorityClassName = &class.Value, class.Name
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = class.PreemptionPolicy
		}
	}
	return nil
}

// filter runs the filters for all nodes in their current state.
func (x *dryRun) filter(ctx context.Context) error {
	infos, _ := x.stage.snapshot.List() // it never fails
	only, status, _ := x.stage.RunPreFilterPlugins(ctx, x.state, x.pod)
	if status.Code() == fwk.Error {
		return status.AsError()
	}
	if status.IsSuccess() {
		x.state.Write(stateKey, verdict{}) // as our PreFilter does, which is the last
	}
	counts := &documents.PreviewNodes{All: len(infos), Refused: map[string]int{}}
	x.out.Nodes = counts
	for _, info := range infos {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := info.Node().Name
		refused := status
		if refused.IsSuccess() {
			refused = x.filterNode(ctx, info, only)
		}
		here := reservations.Pod{
			UID: previewUID, Namespace: x.pod.Namespace, Group: objects.GroupOf(x.pod.Namespace, x.pod.Labels),
			Required: x.requires != "",
		}
		switch {
		case !refused.IsSuccess():
			x.refuse(name, refused)
		case !x.r.Holds.MayUse(name, here).OK, !reservation.LeavesRoom(x.r.Holds, here, x.pod, info):
			x.statuses[name] = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the node is held for another pod").WithPlugin(reservation.Name)
			counts.Held++
		default:
			x.fit = append(x.fit, name)
		}
	}
	x.askExtenders(ctx)
	counts.Fit = len(x.fit)
	return nil
}

// askExtenders calls the extenders with a filter verb for the nodes that the filters
// accept, as a cycle does.
func (x *dryRun) askExtenders(ctx context.Context) {
	asked := newExtenders(x.stage, x.pod)
	x.fit = slices.DeleteFunc(x.fit, func(name string) bool {
		info, _ := x.stage.snapshot.Get(name) // it fits, so it is there
		fit := asked.fit(ctx, info, removal{})
		switch {
		case fit == planner.Passes:
			return false
		case asked.failed != nil:
			x.refuse(name, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, asked.failure()))
		default:
			code, o := fwk.Unschedulable, asked.refused[len(asked.refused)-1]
			if fit == planner.Never {
				code = fwk.UnschedulableAndUnresolvable
			}
			x.refuse(name, fwk.NewStatus(code, fmt.Sprintf("extender %s: %s", o.extender, o.why)))
		}
		return true
	})
}

// refuse records that a node rejects the pod.
func (x *dryRun) refuse(node string, status *fwk.Status) {
	x.statuses[node] = status
	x.out.Nodes.Refused[strings.Join(status.Reasons(), ", ")]++
}

// filterNode runs the filters for one node. only are the nodes that the pod's own fields
// permit, nil for all.
func (x *dryRun) filterNode(ctx context.Context, info fwk.NodeInfo, only *fwk.PreFilterResult) *fwk.Status {
	if only != nil && !only.AllNodes() && !only.NodeNames.Has(info.Node().Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod's own fields leave only other nodes")
	}
	return x.stage.RunFilterPluginsWithNominatedPods(ctx, x.state, x.pod, info)
}

// decide computes the result for the pod as one of its cycles would.
func (x *dryRun) decide(ctx context.Context) {
	quota := x.r.OverMax
	switch {
	case !x.r.Limited.None():
		x.waits(x.r.Limited, quota)
	case quota.None() && len(x.fit) > 0:
		x.out.Outcome, x.out.Node = documents.PreviewFits, x.fit[0]
		x.say("would fit on %d of %d nodes, and no quota is in its way", len(x.fit), x.out.Nodes.All)
	case x.requires != "":
		x.decideNodeBound(ctx)
	case !x.r.Never.None():
		x.waits(x.obstacle(), x.r.Never)
	default:
		x.plan(ctx)
	}
}

// obstacle returns what blocks the pod as long as no pod leaves.
func (x *dryRun) obstacle() reasons.Reason {
	if !x.r.OverMax.None() {
		return x.r.OverMax
	}
	var texts []string
	for _, text := range slices.Sorted(maps.Keys(x.out.Nodes.Refused)) {
		texts = append(texts, fmt.Sprintf("%d %s", x.out.Nodes.Refused[text], text))
	}
	if x.out.Nodes.Held > 0 {
		texts = append(texts, fmt.Sprintf("%d held for other pods", x.out.Nodes.Held))
	}
	return reasons.New(reasons.NoNodeFits, "none of %d nodes could take the pod: %s", x.out.Nodes.All, strings.Join(texts, "; "))
}

// plan does what PostFilter would do.
func (x *dryRun) plan(ctx context.Context) {
	planning, params := *x.r.Plan.Snapshot, x.r.Plan.Params
	if x.r.OverMax.None() {
		planning.Nodes = candidates(&planning, framework.NewNodeToStatus(x.statuses, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)))
	} else {
		params.Barred = func(node string) bool {
			s := x.statuses[node]
			return s.Code() == fwk.UnschedulableAndUnresolvable && s.Plugin() != reservation.Name
		}
	}
	t := newTrial(x.stage, x.state, x.pod, &planning, nil)
	params.Fits = func(node string, without []*planner.Pod) planner.Fit { return t.fits(ctx, node, without) }
	d := t.extenders.addTo(search.Plan(&planning, x.r.Plan.Ask, params))
	var why reasons.Reason // why no node is held
	switch d.Outcome {
	case planner.Refuse:
		why = output.Refusal(&d)
		x.waits(x.obstacle(), why)
	case planner.Wait:
		why = reasons.New(reasons.WaitingForRoom,
			"it fits on node %s once pods that leave already are gone, if no pod before it in the order takes the room", d.Node)
		x.waits(why)
		x.out.Node, x.out.After = d.Node, x.r.Delay.String()
	default:
		x.out.Outcome, x.out.Node, x.out.After = documents.PreviewPreempts, d.Node, x.r.Delay.String()
		x.out.Because(x.obstacle())
		x.say("would make others leave, once it has waited for %s (preemption.delay): %s", x.out.After, d.Sentence())
	}
	x.record(output.Step{Decision: &d, Types: planning.Types, Reason: why})
}

// decideNodeBound computes the result for a node-bound pod that its node does not take or
// a quota rejects.
func (x *dryRun) decideNodeBound(ctx context.Context) {
	a := x.r.NodeBound
	if a == nil {
		x.waits(reasons.New(reasons.NoNodeFits, "the only node it can run on is not there"))
		return
	}
	pl := &Plugin{process: x.process, handle: x.stage, pods: x.stage.pods, nodeLister: x.stage.nodes}
	t := pl.newNodeBoundTrial(ctx, x.state, x.pod, a)
	params := a.Params
	params.Fits = func(without []*planner.Pod) planner.Fit { return t.fits(ctx, without) }
	d := t.extenders.addToNodeBound(daemonset.Plan(a.Node, a.Ask, params))
	var why reasons.Reason // why the node is not held
	fits := d.Outcome == planner.Hold && d.Stopped == ""
	switch {
	case d.Outcome == planner.Preempt:
		x.out.Outcome, x.out.Node = documents.PreviewPreempts, d.Node
		x.out.Because(x.obstacle())
		x.say("would make others leave: %s", d.Sentence())
	case fits && !x.r.OwnLeave.None():
		why = x.r.OwnLeave
		x.waits(why)
	case fits && x.r.OverMax.None() && isSettled(a.Node):
		x.out.Outcome, x.out.Node = documents.PreviewFits, d.Node
		x.say("would fit on node %s, the only one it can run on, and goes before the pods that keep it off now", d.Node)
	case d.Outcome == planner.Hold:
		x.out.Node = d.Node
		x.waits(reasons.New(reasons.OfHold(0, string(d.Stopped)), "%s", d.Sentence()))
	default:
		why = output.NodeBoundRefusal(&d)
		x.waits(x.obstacle(), why)
	}
	x.record(output.Step{NodeBoundDecision: &d, Types: a.Node.Types, Reason: why})
}

// isSettled reports whether no pod leaves a node and none holds it before the pod of the plan.
func isSettled(n *daemonset.Node) bool {
	return len(n.Before) == 0 && !slices.ContainsFunc(n.Pods, func(p *planner.Pod) bool { return p.Protection == planner.Leaving })
}

// record adds a decision as the store would record it. Its reason is why no node is held.
func (x *dryRun) record(s output.Step) {
	s.Ref = objects.Ref{UID: previewUID, Namespace: x.pod.Namespace, Name: x.pod.Name}
	s.Queue, s.At = x.r.Placement.Path, x.process.Clock.Now()
	if s.Kind = output.StepRefused; s.Reason.None() {
		s.Kind = output.StepHeld
	}
	x.out.Decision = record.DecisionOf(&s)
}

// waits says why the pod would wait: the first reason that applies, followed by the
// others.
func (x *dryRun) waits(list ...reasons.Reason) {
	x.out.Outcome = documents.PreviewWaits
	x.out.Because(list...)
	var texts []string
	for _, r := range list {
		if !r.None() {
			texts = append(texts, r.Text)
		}
	}
	x.say("would wait: %s", strings.Join(texts, "; "))
}

func (x *dryRun) say(format string, args ...any) {
	x.out.Summary = fmt.Sprintf("Pod %s/%s ", x.pod.Namespace, x.pod.Name) + fmt.Sprintf(format, args...)
}
