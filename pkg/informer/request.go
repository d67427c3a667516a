package informer

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// RequestOptions are the feature gates that change what a pod requests. They equal those
// of the scheduler, which computes the usage of nodes by the same rules.
type RequestOptions struct {
	// PodLevelResources lets spec.resources of the pod override its containers.
	PodLevelResources bool
	// PodLevelResize permits in-place resize of pod-level resources.
	PodLevelResize bool
}

// Requests is what a pod uses of its queue: what the scheduler counts on the node (init
// containers, sidecars, overhead, pod-level resources, in-place resize), with cpu in
// milli-CPU under the name resources.CPU, and one pod.
func Requests(pod *corev1.Pod, o RequestOptions) resources.Vector {
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources:                             true,
		SkipPodLevelResources:                          !o.PodLevelResources,
		InPlacePodLevelResourcesVerticalScalingEnabled: o.PodLevelResize,
	})
	return vector(list, resources.Entry{Name: resources.Pods, Amount: 1})
}

// Allocatable is what a node offers to all its pods together, of each type at most
// [objects.MaxRequest].
func Allocatable(node *corev1.Node) resources.Vector {
	return vector(node.Status.Allocatable).Cap(objects.MaxRequest)
}

func vector(list corev1.ResourceList, more ...resources.Entry) resources.Vector {
	entries := make([]resources.Entry, 0, len(list)+len(more))
	for name, q := range list {
		e := resources.Entry{Name: string(name), Amount: amount(q, 0, math.MaxInt64)}
		if name == corev1.ResourceCPU {
			e = resources.Entry{Name: resources.CPU, Amount: amount(q, resource.Milli, math.MaxInt64/1000)}
		}
		entries = append(entries, e)
	}
	return resources.VectorOf(append(entries, more...)...)
}

// amount returns the quantity in a scale, rounded up, limited to 0 and, above most, to the largest
// amount: a request that overflows must not become small. One quantity always fits, but the sum
// over the containers of a pod may not.
func amount(q resource.Quantity, scale resource.Scale, most int64) resources.Amount {
	switch {
	case q.Sign() < 0:
		return 0
	case q.CmpInt64(most) > 0:
		return resources.MaxAmount
	}
	return resources.Amount(q.ScaledValue(scale))
}
