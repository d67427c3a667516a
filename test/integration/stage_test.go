package integration

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// stage turns the state of a scenario into objects of the cluster. Scenarios abbreviate
// some facts. On the stage:
//
//   - every pod is an application of its own unless the scenario names one, because
//     otherwise the oldest pod of a queue would be an originator;
//   - an originator has a companion: a pod of its application that it owns, that fits no
//     node and that does not preempt;
//   - gpu is example.com/gpu;
//   - the requirements of a pod on its node beside room are a host port, a required term
//     of (anti-)affinity, or a constraint DoNotSchedule with a skew of 1, and the domain
//     is always the node.
type stage struct {
	// Namespace has the pods and budgets.
	Namespace string
	// Prefix begins the names of pods, budgets and applications.
	Prefix string
	// Labels are on all pods, nodes and budgets.
	Labels map[string]string
	// Below is the queue that stands for root, as a path.
	Below string
	// Node returns the name of the object of a node.
	Node func(node string) string
	// Selector is the node selector of all pods.
	Selector map[string]string
	// Class returns the name of a PriorityClass.
	Class func(priority int32, never bool) string
}

// gpu is the stage's resource for the scenarios' type of that name.
const gpu = "example.com/gpu"

// Name returns the name of the object of a pod or budget: scenarios use characters that
// object names may not have.
func (s *stage) Name(name string) string {
	return s.Prefix + strings.NewReplacer("'", "-again", "_", "-").Replace(name)
}

// Pod returns a running pod of the scenario; it has no status, UID or age yet.
func (s *stage) Pod(p *scenario.Pod) *corev1.Pod {
	pod := s.Asker(&p.Ask)
	pod.Spec.NodeName = s.Node(p.Node)
	for _, b := range p.Budgets {
		pod.Labels[s.budgetLabel(b)] = "covered"
	}
	if p.OptedOut {
		pod.Annotations[allowPreemption] = "false"
	}
	switch p.Protection {
	case planner.Static: // pods of queues are never static
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		pod.Annotations[corev1.MirrorPodAnnotationKey] = "story"
	case planner.Foreign:
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	return pod
}

// Companion makes a pod an originator, given its object.
func (s *stage) Companion(p *scenario.Pod, owner *corev1.Pod) *corev1.Pod {
	a := p.Ask
	a.Request, a.Never, a.Place = nil, true, scenario.Place{}
	c := s.Asker(&a)
	c.Name = owner.Name + companionSuffix
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID}}
	c.Spec.NodeSelector = map[string]string{"example.com/node": "nowhere"}
	return c
}

// companionSuffix ends the names of companions.
const companionSuffix = "-companion"

// Asker returns a pod of the scenario without a node.
func (s *stage) Asker(a *scenario.Ask) *corev1.Pod {
	app := a.Name
	if a.OwnApp {
		app = a.App
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name(a.Name), Annotations: map[string]string{},
			Labels: map[string]string{placement.KeyApplicationID: s.Name(app)},
		},
		Spec: corev1.PodSpec{
			SchedulerName: profile, NodeSelector: s.Selector, TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: resourceList(a.Request)}}},
		},
	}
	maps.Copy(pod.Labels, s.Labels)
	s.place(pod, a.Place)
	if a.Queue != "" {
		pod.Labels[placement.KeyQueue] = s.Below + strings.TrimPrefix(a.Queue, "root")
	}
	needs := &pod.Spec.Containers[0].Resources
	delete(needs.Requests, corev1.ResourcePods)
	if n, ok := needs.Requests[gpu]; ok { // limits and requests of such types must be equal
		needs.Limits = corev1.ResourceList{gpu: n}
	}
	pod.Spec.PriorityClassName = s.Class(a.Priority, a.Never)
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

const budgetPrefix = "budget.example.com/"

func (s *stage) budgetLabel(name string) string { return budgetPrefix + s.Name(name) }

// Budget returns a budget of the scenario with the status that a controller would give
// it. It allows at most as many disruptions as it covers pods.
func (s *stage) Budget(state *scenario.State, b *scenario.Budget) *policyv1.PodDisruptionBudget {
	covered := int64(0)
	for i := range state.Pods {
		if slices.Contains(state.Pods[i].Budgets, b.Name) && state.Pods[i].Protection != planner.Leaving {
			covered++
		}
	}
	allowed := min(b.Allowed, covered)
	least := intstr.FromInt32(int32(covered - allowed))
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name(b.Name), Labels: s.Labels},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{s.budgetLabel(b.Name): "covered"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: int32(allowed), ExpectedPods: int32(covered), CurrentHealthy: int32(covered),
			DesiredHealthy: int32(covered - allowed),
		},
	}
}

// overOwnMax is the case with an asker that is over the max of its own leaf. It is refused
// by no law: its quota keeps it waiting, and there is no plan.
const overOwnMax = "laws/law7_max_is_a_fence_for_its_own_victims/3"

// Want returns the outcome of a case with the names of objects.
func (s *stage) Want(c *scenario.Case) scenario.Outcome {
	want := c.Want
	if c.Name == overOwnMax {
		want.Rule = ""
	}
	want.Asker, want.Victims = s.Name(want.Asker), nil
	for _, v := range c.Want.Victims {
		want.Victims = append(want.Victims, s.Name(v))
	}
	slices.Sort(want.Victims)
	if want.Node != "" {
		want.Node = s.Node(want.Node)
	}
	return want
}

// groupLabel has the group of a pod.
const groupLabel = "group.example.com"

// place gives a pod the scenario's requirements beside room.
func (s *stage) place(pod *corev1.Pod, p scenario.Place) {
	if p.Port != 0 {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: p.Port, HostPort: p.Port, Protocol: corev1.ProtocolTCP}}
	}
	if p.Group != "" {
		pod.Labels[groupLabel] = s.Name(p.Group)
	}
	if p.Apart != "" || p.Beside != "" {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Apart != "" {
		pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.onNode(p.Apart)}
	}
	if p.Beside != "" {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.onNode(p.Beside)}
	}
	if p.Spread != "" {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: s.group(p.Spread),
		}}
	}
}

// onNode returns the pods of a group on a node.
func (s *stage) onNode(group string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{LabelSelector: s.group(group), TopologyKey: corev1.LabelHostname}}
}

func (s *stage) group(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{groupLabel: s.Name(name)}}
}
