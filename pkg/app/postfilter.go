package app

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// PodGroupPlugin is the plugin that starts PodGroups, see package podgroups.
const PodGroupPlugin = "Coscheduling"

// PostFilters knows the plugins that follow one of ours at PostFilter. The scheduler
// joins the messages of all of them, and an error of one replaces all messages. So our
// plugin ends the list if none of the following plugins has anything to do for the pod.
type PostFilters struct {
	handle fwk.Handle
	plugin string

	once sync.Once
	// following are the names of the following plugins. known is true if they could be
	// listed.
	following []string
	known     bool
}

// PostFiltersOf returns the PostFilters for the plugin in the profile of a handle.
func PostFiltersOf(h fwk.Handle, plugin string) *PostFilters {
	return &PostFilters{handle: h, plugin: plugin}
}

// End returns the status with which a plugin rejects a pod of a queue. The status ends
// the list if no following plugin has anything to do.
func (f *PostFilters) End(state fwk.CycleState, pod *corev1.Pod, status *fwk.Status) *fwk.Status {
	f.once.Do(f.list)
	if status.Code() != fwk.Unschedulable || !f.known {
		return status
	}
	for _, name := range f.following {
		switch {
		case name == names.DynamicResources && !mayDeallocate(state, pod):
		case name == PodGroupPlugin && pod.Labels[objects.PodGroupLabel] == "":
		default:
			return status
		}
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, status.Reasons()...)
}

// list reads the profile once it is complete, which it is not while plugins are made.
func (f *PostFilters) list() {
	lister, ok := f.handle.(interface{ ListPlugins() *schedconfig.Plugins })
	if !ok {
		return
	}
	for _, p := range lister.ListPlugins().PostFilter.Enabled {
		if f.known {
			f.following = append(f.following, p.Name)
		}
		f.known = f.known || p.Name == f.plugin
	}
}

// mayDeallocate reports whether DynamicResources may deallocate claims of the pod. If the
// cycle has no state of DynamicResources, another plugin rejected the pod before its
// PreFilter ran, and its PostFilter would only return an error.
func mayDeallocate(state fwk.CycleState, pod *corev1.Pod) bool {
	if _, err := state.Read(names.DynamicResources); err != nil {
		return false
	}
	return len(pod.Spec.ResourceClaims) > 0 ||
		utilfeature.DefaultFeatureGate.Enabled(features.DRAExtendedResource) && mayNeedClaims(pod)
}

// mayNeedClaims reports whether the pod requests extended resources for which claims may
// be made. Only DynamicResources knows whether a DeviceClass has one of them.
func mayNeedClaims(pod *corev1.Pod) bool {
	for name, amount := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if !amount.IsZero() && schedutil.IsDRAExtendedResourceName(name) {
			return true
		}
	}
	return false
}
