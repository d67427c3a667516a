package preemption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
)

// extenders calls the scheduler's extenders about one pod, for one plan. They are called
// after the filters, about the node and the pods that leave it, in the way of upstream's
// preemption. An extender without a preempt verb cannot answer for a node without some
// pods: its filter verb is called for the node as it is.
type extenders struct {
	pod   *corev1.Pod
	nodes fwk.NodeInfoLister
	// list are the extenders that are interested in the pod and can reject a node.
	list []fwk.Extender
	// refused are their objections against nodes, in the order of the calls.
	refused []objection
	// failed is the error of an extender that is not ignorable. No plan is made then.
	failed error
}

// objection is the reason for which an extender rejected a node.
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

// removal is what extenders are told of the pods that leave a node: those that leave it
// in any case, and the victims. It is empty for the node as it is.
type removal struct {
	pods []*corev1.Pod
	// violations is the number of victims that their budgets do not allow.
	violations int64
}

// newRemoval returns a removal of these victims, without its pods, which the caller adds.
func (x *extenders) newRemoval(victims []*planner.Pod, budgets []int64) removal {
	if len(x.list) == 0 {
		return removal{}
	}
	return removal{violations: planner.Violations(victims, budgets)}
}

// afterFilters returns the answer of the filters about a node without some pods, or that of
// the extenders if the filters accept it.
func (x *extenders) afterFilters(ctx context.Context, status *fwk.Status, info fwk.NodeInfo, gone removal) planner.Fit {
	switch {
	case status.IsSuccess():
		return x.fit(ctx, info, gone)
	case status.Code() == fwk.UnschedulableAndUnresolvable:
		return planner.Never
	}
	return planner.Fails
}

// fit returns the answer of the extenders about a node that the filters accept without
// the removed pods.
func (x *extenders) fit(ctx context.Context, info fwk.NodeInfo, gone removal) planner.Fit {
	for _, e := range slices.Clone(x.list) {
		if x.failed != nil {
			return planner.Never
		}
		fit, why, err := x.ask(e, info, gone)
		switch {
		case err != nil && e.IsIgnorable():
			klog.FromContext(ctx).V(2).Info("Skipped an extender that is ignorable", "extender", e.Name(), "pod", klog.KObj(x.pod), "err", err)
			x.list = slices.DeleteFunc(slices.Clone(x.list), func(o fwk.Extender) bool { return o == e })
		case err != nil:
			x.failed = fmt.Errorf("extender %s: %w", e.Name(), err)
		case fit != planner.Passes:
			x.refused = append(x.refused, objection{e.Name(), info.Node().Name, why})
			return fit
		}
	}
	if x.failed != nil {
		return planner.Never
	}
	return planner.Passes
}

// ask calls one extender. It returns the reason if it rejects.
func (x *extenders) ask(e fwk.Extender, info fwk.NodeInfo, gone removal) (planner.Fit, string, error) {
	switch {
	case e.SupportsPreemption() && len(gone.pods) > 0:
		return x.askPreemption(e, info.Node().Name, gone)
	case e.IsFilter():
		return x.askFilter(e, info)
	}
	return planner.Passes, "", nil
}

// askPreemption calls the preempt verb of an extender for a node with these victims. If
// the extender returns a part of them, that is a consent, too: it needs no others
// deleted. The laws and the filters decide which of them stay.
func (x *extenders) askPreemption(e fwk.Extender, node string, gone removal) (planner.Fit, string, error) {
	plan := map[string]*extenderv1.Victims{node: {Pods: gone.pods, NumPDBViolations: gone.violations}}
	left, err := e.ProcessPreemption(x.pod, plan, x.nodes)
	if err != nil {
		return planner.Never, "", err
	}
	v, ok := left[node]
	switch {
	case !ok:
		return planner.Fails, "the pods that would go do not make room there", nil
	case (v == nil || len(v.Pods) == 0) && e.IsIgnorable():
		return planner.Fails, "it named no pods that would go", nil
	case v == nil || len(v.Pods) == 0:
		return planner.Never, "", errors.New("expected at least one victim pod on node " + node)
	}
	if other := firstNotProposed(v.Pods, gone.pods); other != "" {
		return planner.Fails, "pod " + other + " would have to go, too, and the plan does not name it", nil
	}
	return planner.Passes, "", nil
}

// firstNotProposed returns the first pod, by name, that was not proposed; empty for none.
func firstNotProposed(pods, proposed []*corev1.Pod) string {
	first := ""
	for _, p := range pods {
		name := p.Namespace + "/" + p.Name
		if (first == "" || name < first) && !slices.ContainsFunc(proposed, func(o *corev1.Pod) bool { return o.UID == p.UID }) {
			first = name
		}
	}
	return first
}

// askFilter calls the filter verb. If the extender has no preempt verb, its rejection
// applies whatever pods leave.
func (x *extenders) askFilter(e fwk.Extender, info fwk.NodeInfo) (planner.Fit, string, error) {
	name := info.Node().Name
	passed, failed, never, err := e.Filter(x.pod, []fwk.NodeInfo{info})
	if err != nil {
		return planner.Never, "", err
	}
	if slices.ContainsFunc(passed, func(n fwk.NodeInfo) bool { return n.Node().Name == name }) {
		return planner.Passes, "", nil
	}
	if why, ok := never[name]; ok {
		return planner.Never, orNoReason(why), nil
	}
	why := orNoReason(failed[name])
	if e.SupportsPreemption() {
		return planner.Fails, why, nil
	}
	return planner.Never, why + "; it has no preemptVerb, so it cannot be asked which pods would have to go", nil
}

func orNoReason(why string) string { return cmp.Or(why, "it gave no reason") }

// mostObjections limits the number of rejected nodes in a message.
const mostObjections = 3

// objections describes what the extenders objected to; empty for nothing.
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

// failure says which extender did not answer, and what helps; empty if all answered.
func (x *extenders) failure() string {
	if x.failed == nil {
		return ""
	}
	return fmt.Sprintf("%v; no pod is preempted until the extender answers "+
		"(see its logs, or set ignorable: true for it in the scheduler's configuration)", x.failed)
}

// addToNodeBound adds the answers of the extenders to the decision about a node-bound pod.
func (x *extenders) addToNodeBound(d daemonset.Decision) daemonset.Decision {
	if x.failed == nil {
		d.Objections = x.objections()
		return d
	}
	return daemonset.Decision{
		Ask: d.Ask, Node: d.Node, Need: d.Need, Outcome: planner.Refuse, Stopped: planner.RuleExtender,
		Objections: x.failure(), FitsCalls: d.FitsCalls,
	}
}

// addTo adds the answers of the extenders to the decision. If one that is not ignorable
// did not answer, nothing is decided: the plan may contain pods that need not be
// preempted.
func (x *extenders) addTo(d planner.Decision) planner.Decision {
	if x.failed == nil {
		d.Objections = x.objections()
		return d
	}
	return planner.Decision{
		Ask: d.Ask, Queue: d.Queue, Fence: d.Fence, Outcome: planner.Refuse, Stopped: planner.RuleExtender, Exhaustive: true,
		FilterResults: planner.FilterResults{Objections: x.failure(), FitsCalls: d.FitsCalls},
	}
}
