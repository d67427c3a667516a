package app

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// countedByScheduler returns what upstream's scheduler counts on the node of a pod.
func countedByScheduler(pod *corev1.Pod) resources.Vector {
	r := (&framework.PodInfo{Pod: pod}).CalculateResource().Resource
	entries := []resources.Entry{
		{Name: resources.CPU, Amount: resources.Amount(r.GetMilliCPU())},
		{Name: resources.Memory, Amount: resources.Amount(r.GetMemory())},
		{Name: string(corev1.ResourceEphemeralStorage), Amount: resources.Amount(r.GetEphemeralStorage())},
		{Name: resources.Pods, Amount: 1},
	}
	for name, n := range r.GetScalarResources() {
		entries = append(entries, resources.Entry{Name: string(name), Amount: resources.Amount(n)})
	}
	return resources.VectorOf(entries...)
}

var requested = rapid.Custom(func(t *rapid.T) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"} {
		if rapid.Bool().Draw(t, string(name)) {
			list[name] = *resource.NewMilliQuantity(rapid.Int64Range(0, 9).Draw(t, "amount")*500, resource.DecimalSI)
		}
	}
	return list
})

// podsOfAllKinds have init containers, sidecars, overhead, pod-level resources, and
// resizes in all stages.
var podsOfAllKinds = rapid.Custom(func(t *rapid.T) *corev1.Pod {
	pod := &corev1.Pod{}
	maybe := rapid.Bool()
	container := func(name string) (corev1.Container, corev1.ContainerStatus) {
		c, s := corev1.Container{Name: name}, corev1.ContainerStatus{Name: name}
		c.Resources.Requests = requested.Draw(t, name)
		if maybe.Draw(t, "resized") {
			s.AllocatedResources = requested.Draw(t, "allocated")
			s.Resources = &corev1.ResourceRequirements{Requests: requested.Draw(t, "actuated")}
		}
		return c, s
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "containers") {
		c, s := container(fmt.Sprint("c", i))
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, s)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "init containers") {
		c, s := container(fmt.Sprint("i", i))
		if maybe.Draw(t, "sidecar") {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, s)
	}
	if maybe.Draw(t, "overhead") {
		pod.Spec.Overhead = requested.Draw(t, "overhead of")
	}
	if maybe.Draw(t, "pod level") {
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: requested.Draw(t, "pod requests")}
		if maybe.Draw(t, "pod resized") {
			pod.Status.AllocatedResources = requested.Draw(t, "pod allocated")
			pod.Status.Resources = &corev1.ResourceRequirements{Requests: requested.Draw(t, "pod actuated")}
		}
	}
	reason := rapid.SampledFrom([]string{"", corev1.PodReasonInfeasible, corev1.PodReasonDeferred}).Draw(t, "pending")
	if reason != "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason}}
	}
	return pod
})

// lawOfCounting: a queue is charged what the scheduler counts on the node.
func lawOfCounting(options informer.RequestOptions) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if diff := cmp.Diff(countedByScheduler(pod).String(), informer.Requests(pod, options).String()); diff != "" {
			return fmt.Errorf("(-scheduler +queue)\n%s", diff)
		}
		return nil
	}
}

// TestQueuesAreChargedWhatTheSchedulerCounts: and not if the gates are read as others.
func TestQueuesAreChargedWhatTheSchedulerCounts(t *testing.T) {
	for _, c := range []struct{ levels, resize bool }{{false, false}, {true, false}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.PodLevelResources:                       c.levels,
				features.InPlacePodLevelResourcesVerticalScaling: c.resize,
				features.NodeDeclaredFeatures:                    c.resize, // required by the gate before
			})
			options := informer.RequestOptions{PodLevelResources: c.levels, PodLevelResize: c.resize}
			expect.Same(t, "options", options, Requests())
			expect.Law(t, podsOfAllKinds, lawOfCounting(options))
			if others := (informer.RequestOptions{PodLevelResources: true, PodLevelResize: c.levels}); others != options {
				expect.Broken(t, podsOfAllKinds, lawOfCounting(others))
			}
		})
	}
}
