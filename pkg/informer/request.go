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
		switch name {
		case corev1.ResourceCPU:
			entries = append(entries, resources.Entry{Name: resources.CPU, Amount: milli(q)})
		default:
			entries = append(entries, resources.Entry{Name: string(name), Amount: whole(q)})
		}
	}
	return resources.VectorOf(append(entries, more...)...)
}

// milli returns the quantity in thousandths, rounded up, limited to 0 and the largest
// amount: a request that overflows must not become small.
func milli(q resource.Quantity) resources.Amount {
	switch {
	case q.Sign() < 0:
		return 0
	case q.CmpInt64(math.MaxInt64/1000) > 0:
		return resources.MaxAmount
	}
	return resources.Amount(q.MilliValue())
}

// whole returns the quantity rounded up, limited to 0 and the largest amount. One
// quantity always fits, but the sum over the containers of a pod may not.
func whole(q resource.Quantity) resources.Amount {
	switch {
	case q.Sign() < 0:
		return 0
	case q.CmpInt64(math.MaxInt64) > 0:
		return resources.MaxAmount
	}
	return resources.Amount(q.Value())
}
