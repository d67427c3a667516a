package preemption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
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
	refused []objection
	// failed is the error of an extender that must answer. No plan is made then.
	failed error
}

// objection is what an extender said against a node.
type objection struct{ extender, node, why string }

func (o objection) String() string {
	return fmt.Sprintf("extender %s refuses node %s: %s", o.extender, o.node, o.why)
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
			x.refused = append(x.refused, objection{e.Name(), info.Node().Name, why})
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

// askPreemption asks what is left of a plan with these pods. A part of them is a consent,
// too: the extender needs no more to go. The laws and the filters say which of them stay.
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
	}
	if other := beyond(v.Pods, gone.pods); other != "" {
		return victims.Fails, "pod " + other + " would have to go, too, and the plan does not name it", nil
	}
	return victims.Passes, "", nil
}

// beyond is the first of the pods, by name, that is not proposed; empty for none.
func beyond(pods, proposed []*corev1.Pod) string {
	first := ""
	for _, p := range pods {
		name := p.Namespace + "/" + p.Name
		if (first == "" || name < first) && !slices.ContainsFunc(proposed, func(o *corev1.Pod) bool { return o.UID == p.UID }) {
			first = name
		}
	}
	return first
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
	var texts []string
	for _, o := range x.refused[:min(len(x.refused), mostObjections)] {
		texts = append(texts, o.String())
	}
	if more := len(x.refused) - mostObjections; more > 0 {
		return fmt.Sprintf("%s; and %d more like it", strings.Join(texts, "; "), more)
	}
	return strings.Join(texts, "; ")
}

// silence says that an extender did not answer, and what helps; empty if all did.
func (x *extenders) silence() string {
	if x.failed == nil {
		return ""
	}
	return fmt.Sprintf("%v; no pod is preempted until the extender answers (see its logs, or set ignorable: true for it in the scheduler's configuration)", x.failed)
}

// judgedThere is judged for a pod that can run on one node only.
func (x *extenders) judgedThere(d required.Decision) required.Decision {
	if x.failed == nil {
		d.Objections = x.objections()
		return d
	}
	return required.Decision{
		Ask: d.Ask, Node: d.Node, Need: d.Need, Outcome: victims.Refuse, Stopped: victims.RuleExtender,
		Objections: x.silence(), FitsCalls: d.FitsCalls,
	}
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
