package informer

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// RequestOptions are the feature gates that change what a pod requests. They
// are those of the scheduler, which counts nodes by the same rules.
type RequestOptions struct {
	// PodLevelResources lets spec.resources of the pod override its containers.
	PodLevelResources bool
	// PodLevelResize lets pod-level resources be resized in place.
	PodLevelResize bool
}

// Requests is what a pod uses of its queue: what the scheduler counts on the
// node (init containers, sidecars, overhead, pod-level resources, in-place
// resize), with cpu in milli-CPU under the name resources.CPU, and one pod.
func Requests(pod *corev1.Pod, o RequestOptions) resources.Vector {
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources:                             true,
		SkipPodLevelResources:                          !o.PodLevelResources,
		InPlacePodLevelResourcesVerticalScalingEnabled: o.PodLevelResize,
	})
	return vector(list, resources.Entry{Name: resources.Pods, Amount: 1})
}

// Allocatable is what a node can hold of all its pods together.
func Allocatable(node *corev1.Node) resources.Vector { return vector(node.Status.Allocatable) }

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

// milli is the quantity in thousandths, rounded up, from 0 to the largest
// amount: a request that would overflow must not come out small.
func milli(q resource.Quantity) resources.Amount {
	switch {
	case q.Sign() < 0:
		return 0
	case q.CmpInt64(math.MaxInt64/1000) > 0:
		return resources.MaxAmount
	}
	return resources.Amount(q.MilliValue())
}

// whole is the quantity rounded up, from 0 to the largest amount. One quantity
// always fits, but the sum over the containers of a pod may not.
func whole(q resource.Quantity) resources.Amount {
	switch {
	case q.Sign() < 0:
		return 0
	case q.CmpInt64(math.MaxInt64) > 0:
		return resources.MaxAmount
	}
	return resources.Amount(q.Value())
}
