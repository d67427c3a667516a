package preemption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// extenders asks the scheduler's extenders about one pod, for one plan. They are asked
// after the filters, about the node and the pods that go from it, through the calls of
// upstream's preemption. An extender without a preempt verb cannot say what it would
// answer once pods are gone: it is asked its filter verb about the node as it is.
type extenders struct {
	pod   *corev1.Pod
	nodes fwk.NodeInfoLister
	// list are those that are interested in the pod and can refuse a node.
	list []fwk.Extender
	// refused is what they said against nodes, in the order in which they were asked.
	refused []string
	// failed is the error of an extender that must answer. No plan is made then.
	failed error
}

func newExtenders(handle fwk.Handle, pod *corev1.Pod) *extenders {
	x := &extenders{pod: pod}
	for _, e := range handle.Extenders() {
		if (e.SupportsPreemption() || e.IsFilter()) && e.IsInterested(pod) {
			x.list = append(x.list, e)
		}
	}
	if len(x.list) > 0 {
		x.nodes = handle.SnapshotSharedLister().NodeInfos()
	}
	return x
}

// leave are the pods that go from a node: those that leave it anyway, and the victims.
type leave struct {
	pods []*corev1.Pod
	// violations is the number of victims that their budgets do not allow.
	violations int64
}

// leave begins the list of those that go, of which the pods are the victims.
func (x *extenders) leave(without []*victims.Pod, budgets []int64) leave {
	if len(x.list) == 0 {
		return leave{}
	}
	return leave{violations: victims.Violations(without, budgets)}
}

// fit is what the extenders say of a node that the filters pass without some pods.
func (x *extenders) fit(ctx context.Context, info fwk.NodeInfo, gone leave) victims.Fit {
	for _, e := range slices.Clone(x.list) {
		if x.failed != nil {
			return victims.Never
		}
		fit, why, err := x.ask(e, info, gone)
		switch {
		case err != nil && e.IsIgnorable():
			klog.FromContext(ctx).V(2).Info("Skipped an extender that is ignorable", "extender", e.Name(), "pod", klog.KObj(x.pod), "err", err)
			x.list = slices.DeleteFunc(slices.Clone(x.list), func(o fwk.Extender) bool { return o == e })
		case err != nil:
			x.failed = fmt.Errorf("extender %s: %w", e.Name(), err)
		case fit != victims.Passes:
			x.refused = append(x.refused, fmt.Sprintf("extender %s refuses node %s: %s", e.Name(), info.Node().Name, why))
			return fit
		}
	}
	if x.failed != nil {
		return victims.Never
	}
	return victims.Passes
}

// ask asks one extender, and says why it refuses.
func (x *extenders) ask(e fwk.Extender, info fwk.NodeInfo, gone leave) (victims.Fit, string, error) {
	switch {
	case e.SupportsPreemption() && len(gone.pods) > 0:
		return x.askPreemption(e, info.Node().Name, gone)
	case e.IsFilter():
		return x.askFilter(e, info)
	}
	return victims.Passes, "", nil
}

// askPreemption asks what is left of a plan with these pods. Only the same pods are a
// consent: the laws chose them, and each of them is needed.
func (x *extenders) askPreemption(e fwk.Extender, node string, gone leave) (victims.Fit, string, error) {
	plan := map[string]*extenderv1.Victims{node: {Pods: gone.pods, NumPDBViolations: gone.violations}}
	left, err := e.ProcessPreemption(x.pod, plan, x.nodes)
	if err != nil {
		return victims.Never, "", err
	}
	v, ok := left[node]
	switch {
	case !ok:
		return victims.Fails, "the pods that would go do not make room there", nil
	case (v == nil || len(v.Pods) == 0) && e.IsIgnorable():
		return victims.Fails, "it named no pods that would go", nil
	case v == nil || len(v.Pods) == 0:
		return victims.Never, "", errors.New("expected at least one victim pod on node " + node)
	case !samePods(v.Pods, gone.pods):
		return victims.Never, "it would have other pods go than the laws allow", nil
	}
	return victims.Passes, "", nil
}

func samePods(a, b []*corev1.Pod) bool {
	uids := func(pods []*corev1.Pod) []types.UID {
		out := make([]types.UID, 0, len(pods))
		for _, p := range pods {
			out = append(out, p.UID)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(uids(a), uids(b))
}

// askFilter asks the filter verb. Where the extender has no other, its refusal holds
// whichever pods go.
func (x *extenders) askFilter(e fwk.Extender, info fwk.NodeInfo) (victims.Fit, string, error) {
	name := info.Node().Name
	passed, failed, never, err := e.Filter(x.pod, []fwk.NodeInfo{info})
	if err != nil {
		return victims.Never, "", err
	}
	if slices.ContainsFunc(passed, func(n fwk.NodeInfo) bool { return n.Node().Name == name }) {
		return victims.Passes, "", nil
	}
	if why, ok := never[name]; ok {
		return victims.Never, said(why), nil
	}
	why := said(failed[name])
	if e.SupportsPreemption() {
		return victims.Fails, why, nil
	}
	return victims.Never, why + "; it has no preemptVerb, so it cannot be asked which pods would have to go", nil
}

func said(why string) string {
	if why == "" {
		return "it gave no reason"
	}
	return why
}

// mostObjections bounds what is told of the nodes that extenders refused.
const mostObjections = 3

// objections is what the extenders said against nodes; empty for nothing.
func (x *extenders) objections() string {
	if len(x.refused) > mostObjections {
		return fmt.Sprintf("%s; and %d more like it", strings.Join(x.refused[:mostObjections], "; "), len(x.refused)-mostObjections)
	}
	return strings.Join(x.refused, "; ")
}

// silence says that an extender did not answer, and what helps; empty if all did.
func (x *extenders) silence() string {
	if x.failed == nil {
		return ""
	}
	return fmt.Sprintf("%v; no pod is preempted until the extender answers (see its logs, or set ignorable: true for it in the scheduler's configuration)", x.failed)
}

// judged is the decision with what the extenders said. Where one that must answer did
// not, nothing is decided: the plan may name pods that need not go.
func (x *extenders) judged(d victims.Decision) victims.Decision {
	if x.failed == nil {
		d.Objections = x.objections()
		return d
	}
	return victims.Decision{
		Ask: d.Ask, Queue: d.Queue, Fence: d.Fence, Outcome: victims.Refuse, Stopped: victims.RuleExtender,
		Objections: x.silence(), FitsCalls: d.FitsCalls,
	}
}
