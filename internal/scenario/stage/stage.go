package stage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// Stage says how the worlds of a driver become objects.
type Stage struct {
	// Namespace has the pods and budgets.
	Namespace string
	// Below is the queue that stands for root, as a path; empty means root itself.
	Below string
	// NodeName is the name of the object of a node; nil means the story's.
	NodeName func(node string) string
	// Selector is the node selector of all pods.
	Selector map[string]string
	// Class is the name of a PriorityClass; nil means that pods say their priority
	// themselves.
	Class func(priority int32, never bool) string
	// Scheduler and Other are the profile with queues and one without.
	Scheduler, Other string
}

// allowPreemption is the annotation by which pods opt out.
const allowPreemption = placement.Domain + "allow-preemption"

// gpu is what the stories' type of that name is on the stage.
const gpu = "example.com/gpu"

// Name is the name of the object of a pod or budget: stories use characters that
// objects may not have.
func Name(name string) string {
	return strings.NewReplacer("'", "-again", "_", "-").Replace(name)
}

// Node is the name of the object of a node.
func (s *Stage) Node(name string) string {
	if s.NodeName == nil {
		return name
	}
	return s.NodeName(name)
}

// queue is a path of the story on the stage.
func (s *Stage) queue(path string) string {
	if s.Below == "" {
		return path
	}
	return s.Below + strings.TrimPrefix(path, "root")
}

// Pod is a running pod of the story; its status has not been written and nobody
// gave it a UID or an age.
func (s *Stage) Pod(p *scenario.Pod) *corev1.Pod {
	pod := s.pod(&p.Ask)
	pod.Spec.NodeName = s.Node(p.Node)
	for _, b := range p.Budgets {
		pod.Labels[budgetLabel(b)] = "covered"
	}
	if p.OptedOut {
		pod.Annotations[allowPreemption] = "false"
	}
	switch p.Protection {
	case victims.Static:
		pod.Annotations[corev1.MirrorPodAnnotationKey] = "story"
	case victims.Foreign:
		pod.Spec.SchedulerName = s.Other
	}
	return pod
}

// Asker is a pod of the story without a node.
func (s *Stage) Asker(a *scenario.Ask) *corev1.Pod { return s.pod(a) }

// Companion makes the owner, which exists, an originator.
func (s *Stage) Companion(owner *corev1.Pod) *corev1.Pod {
	c := owner.DeepCopy()
	c.ObjectMeta = metav1.ObjectMeta{
		Namespace: owner.Namespace, Name: owner.Name + "-companion", Labels: maps.Clone(owner.Labels), Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID}},
	}
	maps.DeleteFunc(c.Labels, func(key, _ string) bool { return strings.HasPrefix(key, budgetPrefix) })
	c.Spec.NodeName, c.Status = "", corev1.PodStatus{}
	c.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/never"}}
	return c
}

func (s *Stage) pod(a *scenario.Ask) *corev1.Pod {
	app := a.Name
	if a.OwnApp {
		app = a.App
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: Name(a.Name), Annotations: map[string]string{},
			Labels: map[string]string{placement.KeyApplicationID: Name(app), placement.KeyQueue: s.queue(a.Queue)},
		},
		Spec: corev1.PodSpec{
			SchedulerName: s.Scheduler, NodeSelector: s.Selector, TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: ResourceList(a.Request)}}},
		},
	}
	delete(pod.Spec.Containers[0].Resources.Requests, corev1.ResourcePods)
	if s.Class != nil {
		pod.Spec.PriorityClassName = s.Class(a.Priority, a.Never)
		return pod
	}
	pod.Spec.Priority = &a.Priority
	if a.Never {
		never := corev1.PreemptNever
		pod.Spec.PreemptionPolicy = &never
	}
	return pod
}

// ResourceList is an amount of the story as quantities.
func ResourceList(a scenario.Amounts) corev1.ResourceList {
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

// typeName is a resource type of the story on the stage.
func typeName(name string) string {
	if name == "gpu" {
		return gpu
	}
	return name
}

// NodeObject is a node of the story that is ready.
func (s *Stage) NodeObject(n *scenario.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.Node(n.Name), Labels: s.Selector},
		Status:     corev1.NodeStatus{Allocatable: ResourceList(n.Allocatable)},
	}
}

const budgetPrefix = "budget.example.com/"

func budgetLabel(name string) string { return budgetPrefix + Name(name) }

// Budget is a budget of the story with the status that a controller would give
// it.
func (s *Stage) Budget(w *scenario.World, b *scenario.Budget) *policyv1.PodDisruptionBudget {
	covered := int64(0)
	for i := range w.Pods {
		if slices.Contains(w.Pods[i].Budgets, b.Name) && w.Pods[i].Protection != victims.Leaving {
			covered++
		}
	}
	least := intstr.FromInt32(int32(covered - b.Allowed))
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: Name(b.Name)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{budgetLabel(b.Name): "covered"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: int32(b.Allowed), ExpectedPods: int32(covered), CurrentHealthy: int32(covered),
			DesiredHealthy: int32(covered - b.Allowed),
		},
	}
}

// Victims are the names of the objects that are to go by an outcome, sorted.
func Victims(o *scenario.Outcome) []string {
	names := make([]string, len(o.Victims))
	for i, v := range o.Victims {
		names[i] = Name(v)
	}
	slices.Sort(names)
	return names
}

// UID is one that stories order pods by: their names.
func UID(name string) types.UID { return types.UID(fmt.Sprintf("uid-%s", name)) }
