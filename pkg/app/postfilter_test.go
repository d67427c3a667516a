package app

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
)

// listing is a handle that lists its profile's plugins at PostFilter.
type listing struct {
	fwk.Handle
	names []string
}

func (l listing) ListPlugins() *schedconfig.Plugins {
	p := &schedconfig.Plugins{}
	for _, name := range l.names {
		p.PostFilter.Enabled = append(p.PostFilter.Enabled, schedconfig.Plugin{Name: name})
	}
	return p
}

type prefiltered struct{}

func (p prefiltered) Clone() fwk.StateData { return p }

// TestLastPluginEndsPostFilter: our plugin ends the list only if no following plugin has
// anything to do.
func TestLastPluginEndsPostFilter(t *testing.T) {
	claims, member, plain := plugintest.Pod("claims", 1), plugintest.Pod("member", 1), plugintest.Pod("plain", 1)
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device"}}
	member.Labels[objects.PodGroupLabel] = "g"
	shipped := []string{"Ours", "DynamicResources"}
	gangs := []string{"Ours", "Coscheduling", "DynamicResources"}
	for _, c := range []struct {
		name    string
		list    []string
		pod     *corev1.Pod
		refused bool // before the PreFilter of DynamicResources
		ends    bool
	}{
		{"no claims", shipped, plain, false, true},
		{"claims", shipped, claims, false, false},
		{"claims that were not looked at", shipped, claims, true, true},
		{"no PodGroup", gangs, plain, false, true},
		{"a PodGroup", gangs, member, false, false},
		{"the last plugin", []string{"Other", "Ours"}, plain, false, true},
		{"another plugin behind it", []string{"Ours", "DynamicResources", "DefaultPreemption"}, plain, false, false},
		{"it is not there", []string{"DynamicResources"}, plain, false, false},
	} {
		state := framework.NewCycleState()
		if !c.refused {
			state.Write("DynamicResources", prefiltered{})
		}
		f := PostFiltersOf(listing{names: c.list}, "Ours")
		got := f.End(state, c.pod, fwk.NewStatus(fwk.Unschedulable, "why"))
		expect.Same(t, c.name+": it ends the list", c.ends, got.Code() == fwk.UnschedulableAndUnresolvable)
		expect.Same(t, c.name+": message", "why", got.Message())
		expect.That(t, f.End(state, c.pod, nil).IsSuccess(), "%s: success is none", c.name)
	}
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{features.DRAExtendedResource: true})
	state := framework.NewCycleState()
	state.Write("DynamicResources", prefiltered{})
	for name, ends := range map[corev1.ResourceName]bool{"memory": true, "example.com/gpu": false, "deviceclass.resource.kubernetes.io/gpu": false} {
		pod := plugintest.Pod("requests", 1)
		pod.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("1")
		got := PostFiltersOf(listing{names: shipped}, "Ours").End(state, pod, fwk.NewStatus(fwk.Unschedulable))
		what := fmt.Sprintf("with claims for extended resources, a pod that requests %s ends the list", name)
		expect.Same(t, what, ends, got.Code() == fwk.UnschedulableAndUnresolvable)
	}
	unknown := PostFiltersOf(struct{ fwk.Handle }{}, "Ours")
	got := unknown.End(framework.NewCycleState(), plain, fwk.NewStatus(fwk.Unschedulable))
	expect.Same(t, "a profile that is not known", fwk.Unschedulable, got.Code())
}
