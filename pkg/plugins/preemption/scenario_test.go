package preemption_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	queuesconfig "github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// inTwoQueues are the plans with an application in two queues, which are not run: the store has an
// application in the queue of its first pod.
var inTwoQueues = []string{
	"laws/law3_not_the_same_application/1", "laws/law3_not_the_same_application/2", "pairs/law3_law6/1",
}

// TestScenarios runs the planner's scenarios on nodes, pods and a queues.yaml, with the real filters.
// pkg/planner runs them on a plain model. Plans with strictGuarantee are also made without it: the
// outcome must differ then, which shows that this test checks it.
func TestScenarios(t *testing.T) {
	skipped := 0
	for _, c := range scenario.Cases(t, "../../planner/testdata") {
		if slices.Contains(inTwoQueues, c.Name) {
			skipped++
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			expect.Same(t, "outcome", c.Want, decide(t, &c, c.Strict))
			expect.That(t, !c.Strict || decide(t, &c, false).String() != c.Want.String(), "it is the same without strictGuarantee")
		})
	}
	expect.Same(t, "plans that are not run", len(inTwoQueues), skipped)
}

// decide runs a cycle of the asker of a plan. The node that is held for it, the pods that are chosen
// and the message of PostFilter are the outcome.
func decide(t *testing.T, of *scenario.Case, strict bool) scenario.Outcome {
	t.Helper()
	c, asker := built(t, of.State), pending(&of.Ask)
	state, statuses := c.fail(t, asker)
	plugin, options := c.postFilter(t, preemption.Name), c.store.Preemption()
	options.StrictGuarantee = strict
	c.store.SetPreemption(options)
	result, status := plugin.PostFilter(t.Context(), state, asker, statuses)
	expect.Holds(t, c.store.Check())
	out := scenario.Outcome{Asker: asker.Name, Kind: planner.Refuse, Victims: c.chosen()}
	if result != nil {
		out.Node = result.NominatedNodeName
	}
	_, room, waits := strings.Cut(status.Message(), string(reasons.WaitingForRoom)+": node ")
	switch {
	case len(out.Victims) > 0:
		out.Kind = planner.Preempt
	case waits:
		out.Kind = planner.Wait
		out.Node, _, _ = strings.Cut(room, " ")
	default:
		out.Rule = refusedBy(status.Message())
	}
	return out
}

// says are the sentences that name the rules by which askers are refused.
var says = map[planner.Rule]string{
	planner.Law2: "(law 2", planner.Law3: "(law 3", planner.Law4: "(law 4",
	planner.Law5: "(law 5", planner.Law6: "(law 6", planner.Law7: "(law 7",
	planner.RuleTooLittle: "pods that may go are not enough", planner.RuleFilters: "the filters refuse",
	planner.RuleForeign: string(planner.RuleForeign), planner.RuleBinding: string(planner.RuleBinding),
}

// refusedBy is the rule that is named first; empty for none.
func refusedBy(said string) planner.Rule {
	if strings.Contains(said, string(reasons.PreemptionNever)) {
		return planner.RuleNeverPreempt
	}
	_, said, _ = strings.Cut(said, string(reasons.PreemptionRefused))
	first := planner.Rule("")
	for rule, sentence := range says {
		if before, _, named := strings.Cut(said, sentence); named {
			said, first = before, rule
		}
	}
	return first
}

// built is the cluster of a scenario. Scenarios abbreviate some facts. Here every pod is an application
// of its own unless the scenario names one, because otherwise the oldest pod of a queue would be an
// originator. What a pod needs of its node beside room is a host port, a required term of
// (anti-)affinity, or a constraint DoNotSchedule with a skew of 1; the domain is the node.
func built(t *testing.T, s *scenario.State) *cluster {
	t.Helper()
	now, placed, binding := time.Now(), podList(nil), podList(nil)
	for _, p := range s.Pods {
		if p.Protection == planner.Binding {
			binding = append(binding, pending(&p.Ask))
			continue
		}
		placed = append(placed, runs(&p, now))
	}
	for _, x := range s.Waiting {
		placed = append(placed, holds(&x, placed, now))
	}
	var nodes nodeList
	for _, n := range s.Nodes {
		made := node(n.Name, 0)
		made.Status.Allocatable = listOf(n.Allocatable)
		nodes = append(nodes, made)
	}
	c := newCluster(t, queuesOf(t, s.Root), nodes, placed)
	for _, b := range s.Budgets {
		c.store.UpsertBudget(budget(s, b), c.now)
	}
	for _, p := range binding {
		c.seen(t, p)
		c.store.Gate(p.UID, c.now)
		expect.That(t, c.store.Assume(p.UID, "n1", store.NoSnapshot, c.now).OK(), "pod %s is not assumed", p.Name)
		c.onSnapshot(t, p)
	}
	return c
}

// pending is a pod of a scenario without a node.
func pending(a *scenario.Ask) *corev1.Pod {
	p := labelled(prioritized(plugintest.Pod(a.Name, 0), a.Priority), "queue", a.Queue, "applicationId", a.Name)
	if a.OwnApp {
		p.Labels["applicationId"] = a.App
	}
	if a.Never {
		never(p)
	}
	requests := listOf(a.Request)
	delete(requests, corev1.ResourcePods)
	p.Spec.Containers[0].Resources.Requests = requests
	if a.Port != 0 {
		withPort(p, a.Port)
	}
	if a.Group != "" {
		labelled(p, "group", a.Group)
	}
	if a.Apart != "" {
		apart(p, "group", a.Apart)
	}
	group := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"group": name}}
	}
	if a.Beside != "" {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: group(a.Beside)},
			},
		}}
	}
	if a.Spread != "" {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: group(a.Spread),
		}}
	}
	return p
}

// runs is a pod of a scenario that has a node.
func runs(x *scenario.Pod, now time.Time) *corev1.Pod {
	p := plugintest.On(pending(&x.Ask), x.Node)
	p.CreationTimestamp = metav1.NewTime(now.Add(-x.Age))
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Annotations = map[string]string{}
	for _, b := range x.Budgets {
		labelled(p, "budget/"+b, "covered")
	}
	if x.OptedOut {
		p.Annotations[informer.AllowPreemption] = "false"
	}
	if x.Originator {
		p.Annotations[informer.OriginatorAnnotation] = "true"
	}
	switch x.Protection {
	case planner.DaemonSet:
		plugintest.Daemon(p, x.Node)
	case planner.Static: // pods of queues are never static
		of("somebody", p).Annotations[corev1.MirrorPodAnnotationKey] = "scenario"
	case planner.Foreign:
		of("somebody", p)
	case planner.Leaving:
		grace := int64(500)
		gone := metav1.NewTime(now.Add(time.Duration(grace) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &gone, &grace
	}
	return p
}

// holds is an asker of a scenario that holds a node, and waits for the leaving pods there.
func holds(x *scenario.Waiting, pods podList, now time.Time) *corev1.Pod {
	p, claim := pending(&x.Ask), reservations.Claim{Node: x.Node, Since: now}
	for _, other := range pods {
		if other.Spec.NodeName == x.Node && other.DeletionTimestamp != nil {
			claim.Victims = append(claim.Victims, other.UID)
		}
	}
	p.Status.Conditions = []corev1.PodCondition{{
		Type: reservations.HeldCondition, Status: corev1.ConditionTrue, Message: claim.Message(),
	}}
	return p
}

// budget is a budget of a scenario. It allows at most as many disruptions as it covers pods.
func budget(s *scenario.State, b scenario.Budget) objects.Budget {
	covered := int64(0)
	for _, p := range s.Pods {
		if slices.Contains(p.Budgets, b.Name) && p.Protection != planner.Leaving {
			covered++
		}
	}
	allowed := min(b.Allowed, covered)
	return objects.Budget{
		Namespace: "ns", Name: b.Name, Generation: 1, Observed: 1, Allowed: allowed, Healthy: covered, Desired: covered - allowed,
		Matches: func(labels map[string]string) bool { return labels["budget/"+b.Name] != "" },
	}
}

// typeName is the resource of a type of a scenario, as queues.yaml names it.
func typeName(name string) string {
	if name == "gpu" {
		return "example.com/gpu"
	}
	return name
}

// listOf are the amounts of a scenario as quantities.
func listOf(a scenario.Amounts) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range a {
		if name == resources.CPU {
			list[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(amount), resource.DecimalSI)
			continue
		}
		list[corev1.ResourceName(typeName(name))] = *resource.NewQuantity(int64(amount), resource.DecimalSI)
	}
	return list
}

// queuesOf is a tree of queues as queues.yaml has it. Its root has no settings.
func queuesOf(t *testing.T, root *queuesconfig.Queue) string {
	t.Helper()
	text := expect.Get(yaml.Marshal(map[string]any{"partitions": []any{map[string]any{
		"name": "default", "placementrules": []any{map[string]any{"name": "provided"}}, "queues": []any{treeOf(root)},
	}}}))(t)
	return string(text)
}

func treeOf(q *queuesconfig.Queue) map[string]any {
	var below []any
	for _, child := range q.Children {
		below = append(below, treeOf(child))
	}
	return map[string]any{
		"name": q.Name, "submitacl": "*", "properties": q.Properties, "queues": below,
		"resources": map[string]any{"guaranteed": quotas(q.Guaranteed.All()), "max": quotas(q.Max.All())},
	}
}

// quotas are amounts as queues.yaml has them.
func quotas(all iter.Seq2[string, resources.Amount]) map[string]string {
	out := map[string]string{}
	for name, amount := range all {
		out[typeName(name)] = fmt.Sprint(int64(amount))
		if name == resources.CPU {
			out[name] += "m"
		}
	}
	return out
}
