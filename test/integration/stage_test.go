package integration

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The methods of a play here turn the state of its scenario into objects of the cluster.
// Scenarios abbreviate some facts. On the stage:
//
//   - every pod is an application of its own unless the scenario names one, because
//     otherwise the oldest pod of a queue would be an originator;
//   - an originator says so by its annotation;
//   - gpu is example.com/gpu;
//   - the requirements of a pod on its node beside room are a host port, a required term
//     of (anti-)affinity, or a constraint DoNotSchedule with a skew of 1, and the domain
//     is always the node.
const (
	// gpu is the stage's resource for the scenarios' type of that name.
	gpu = "example.com/gpu"
	// caseLabel has the play of a pod or node, groupLabel the group of a pod.
	caseLabel, groupLabel = "integration/case", "group.example.com"
)

// object returns the name of the object of a pod, budget, group or application: scenarios
// use characters that object names may not have.
func (c *play) object(name string) string {
	return c.name + "-" + strings.NewReplacer("'", "-again", "_", "-").Replace(name)
}

func (c *play) node(name string) string { return c.nodeSpec(scenario.Node{Name: name}).Name(0) }

func (c *play) nodeSpec(n scenario.Node) localcluster.NodeSpec {
	list := resourceList(n.Allocatable)
	spec := localcluster.NodeSpec{
		NamePrefix: fmt.Sprintf("%s-%s-%s", c.house.id, c.name, n.Name),
		Labels:     map[string]string{label: c.house.id, caseLabel: c.name},
		CPU:        list.Cpu().String(), Memory: list.Memory().String(), Pods: list.Pods().Value(),
	}
	if q, ok := list[gpu]; ok {
		spec.Extended = map[string]string{gpu: q.String()}
	}
	return spec
}

// running returns a pod of the scenario that has a node.
func (c *play) running(p scenario.Pod) *corev1.Pod {
	pod := c.waiting(p.Ask)
	pod.Spec.NodeName = c.node(p.Node)
	for _, b := range p.Budgets {
		pod.Labels[c.budgetLabel(b)] = "covered"
	}
	if p.OptedOut {
		pod.Annotations[allowPreemption] = "false"
	}
	if p.Originator {
		pod.Annotations[informer.OriginatorAnnotation] = "true"
	}
	switch p.Protection {
	case planner.Static: // pods of queues are never static
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		pod.Annotations[corev1.MirrorPodAnnotationKey] = "story"
	case planner.Foreign:
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	case planner.Leaving:
		withGrace(500)(pod)
	}
	return pod
}

// waiting returns a pod of the scenario without a node.
func (c *play) waiting(a scenario.Ask) *corev1.Pod {
	app := a.Name
	if a.OwnApp {
		app = a.App
	}
	pod := c.house.pod(c.object(a.Name), c.object(app))
	pod.Labels[caseLabel] = c.name
	if a.Queue != "" {
		pod.Labels[placement.KeyQueue] = "root." + c.name + strings.TrimPrefix(a.Queue, "root")
	}
	pod.Spec.NodeSelector = map[string]string{caseLabel: c.name}
	pod.Spec.PriorityClassName = c.house.class(a.Priority, a.Never)
	needs := &pod.Spec.Containers[0].Resources
	needs.Requests = resourceList(a.Request)
	delete(needs.Requests, corev1.ResourcePods)
	if n, ok := needs.Requests[gpu]; ok { // limits and requests of such types must be equal
		needs.Limits = corev1.ResourceList{gpu: n}
	}
	c.place(pod, a.Place)
	return pod
}

// resourceList returns an amount of the scenario as quantities.
func resourceList(a scenario.Amounts) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range a {
		switch name {
		case resources.CPU:
			list[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(amount), resource.DecimalSI)
		case resources.Memory:
			list[corev1.ResourceMemory] = *resource.NewQuantity(int64(amount), resource.BinarySI)
		default:
			list[corev1.ResourceName(typeName(name))] = *resource.NewQuantity(int64(amount), resource.DecimalSI)
		}
	}
	return list
}

// typeName returns the stage's name of a resource type of the scenario.
func typeName(name string) string {
	if name == "gpu" {
		return gpu
	}
	return name
}

func (c *play) budgetLabel(name string) string { return "budget.example.com/" + c.object(name) }

// budget returns a budget of the scenario, and how many disruptions it allows: at most as
// many as it covers pods.
func (c *play) budget(b scenario.Budget) (*policyv1.PodDisruptionBudget, int32) {
	covered := int64(0)
	for _, p := range c.State.Pods {
		if slices.Contains(p.Budgets, b.Name) && p.Protection != planner.Leaving {
			covered++
		}
	}
	allowed := min(b.Allowed, covered)
	least := intstr.FromInt32(int32(covered - allowed))
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: c.object(b.Name)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{c.budgetLabel(b.Name): "covered"}},
		},
	}, int32(allowed)
}

// overOwnMax is the case with an asker that is over the max of its own leaf. It is refused
// by no law: its quota keeps it waiting, and there is no plan.
const overOwnMax = "laws/law7_max_is_a_fence_for_its_own_victims/3"

// want is the scenario's outcome with the names of objects.
func (c *play) want() scenario.Outcome {
	want := c.Want
	if c.Name == overOwnMax {
		want.Rule = ""
	}
	want.Asker, want.Victims = c.object(want.Asker), nil
	for _, v := range c.Want.Victims {
		want.Victims = append(want.Victims, c.object(v))
	}
	slices.Sort(want.Victims)
	if want.Node != "" {
		want.Node = c.node(want.Node)
	}
	return want
}

// place gives a pod the scenario's requirements beside room.
func (c *play) place(pod *corev1.Pod, p scenario.Place) {
	if p.Port != 0 {
		port := corev1.ContainerPort{ContainerPort: p.Port, HostPort: p.Port, Protocol: corev1.ProtocolTCP}
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{port}
	}
	if p.Group != "" {
		pod.Labels[groupLabel] = c.object(p.Group)
	}
	if p.Apart != "" || p.Beside != "" {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Apart != "" {
		pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: c.onNode(p.Apart),
		}
	}
	if p.Beside != "" {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: c.onNode(p.Beside),
		}
	}
	if p.Spread != "" {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: c.group(p.Spread),
		}}
	}
}

// onNode returns the pods of a group on a node.
func (c *play) onNode(group string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{LabelSelector: c.group(group), TopologyKey: corev1.LabelHostname}}
}

func (c *play) group(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{groupLabel: c.object(name)}}
}

// queueTree is a queue and those below it, as package config reads them.
type queueTree struct {
	Name       string                       `json:"name"`
	Resources  map[string]map[string]string `json:"resources"`
	Properties map[string]string            `json:"properties"`
	Queues     []queueTree                  `json:"queues,omitempty"`
}

// queuesOf returns a queues.yaml with the tree of each play under the play's name. It is
// an error if the root of a tree has settings, because it is not root on the stage, and
// the settings would have an effect there.
func queuesOf(plays []*play) (string, error) {
	var below []queueTree
	for _, c := range plays {
		t := treeOf(c.State.Root, c.name)
		if len(t.Resources["guaranteed"])+len(t.Resources["max"])+len(t.Properties) > 0 {
			return "", fmt.Errorf("%s: root has settings", c.Name)
		}
		t.Properties = map[string]string{"preemption.delay": "2s"} // of all leaves
		below = append(below, t)
	}
	text, err := yaml.Marshal(map[string]any{"partitions": []any{map[string]any{
		"name": "default", "placementrules": []any{map[string]any{"name": "provided"}},
		"queues": []any{map[string]any{"name": "root", "submitacl": "*", "queues": below}},
	}}})
	return string(text), err
}

func treeOf(q *config.Queue, name string) queueTree {
	t := queueTree{Name: name, Properties: q.Properties, Resources: map[string]map[string]string{
		"guaranteed": quotas(q.Guaranteed.All()), "max": quotas(q.Max.All()),
	}}
	for _, c := range q.Children {
		t.Queues = append(t.Queues, treeOf(c, c.Name))
	}
	return t
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
