package simulation_test

import (
	"reflect"
	"slices"
	"testing"

	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// The simulated profiles have, at every extension point and in the same order, the
// plugins of the shipped profiles, and the probe.
func TestProfilesAreAsShipped(t *testing.T) {
	for _, tt := range []struct {
		name    string
		shipped []byte
		arguments
	}{
		{"two profiles", manifests.TwoProfiles, arguments{window: 1}},
		{"with PodGroups", manifests.WithPodGroups, arguments{window: 1, groups: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj, _, err := scheme.Codecs.UniversalDecoder().Decode(tt.shipped, nil, nil)
			expect.OK(t, err)
			shipped, ours := obj.(*schedconfig.KubeSchedulerConfiguration), configuration(t, tt.arguments)
			if bad := differences(shipped, ours); len(bad) > 0 {
				t.Error(bad)
			}
			queues := profileOf(ours, managed)
			slices.Reverse(queues.Plugins.PostFilter.Enabled)
			queues.Plugins.PostBind.Enabled = nil
			if bad := differences(shipped, ours); len(bad) != 2 {
				t.Errorf("two points are planted, and differences are at %v", bad)
			}
		})
	}
}

// differences returns the extension points at which a shipped profile and ours of the
// same name have different plugins, apart from the probe.
func differences(shipped, ours *schedconfig.KubeSchedulerConfiguration) (out []string) {
	for i := range shipped.Profiles {
		name := shipped.Profiles[i].SchedulerName
		profile := profileOf(ours, name)
		if profile == nil {
			return []string{"there is no " + name}
		}
		x, y := reflect.ValueOf(*shipped.Profiles[i].Plugins), reflect.ValueOf(*profile.Plugins)
		for f := range x.NumField() {
			set, ok := x.Field(f).Interface().(schedconfig.PluginSet)
			if ok && !reflect.DeepEqual(withoutProbe(set), withoutProbe(y.Field(f).Interface().(schedconfig.PluginSet))) {
				out = append(out, name+" "+x.Type().Field(f).Name)
			}
		}
	}
	return out
}

// profileOf returns the profile of a name; nil for none.
func profileOf(cfg *schedconfig.KubeSchedulerConfiguration, name string) *schedconfig.KubeSchedulerProfile {
	for i := range cfg.Profiles {
		if cfg.Profiles[i].SchedulerName == name {
			return &cfg.Profiles[i]
		}
	}
	return nil
}

// withoutProbe returns the enabled and the disabled plugins of a point.
func withoutProbe(set schedconfig.PluginSet) [2][]schedconfig.Plugin {
	enabled := slices.DeleteFunc(slices.Clone(set.Enabled), func(p schedconfig.Plugin) bool { return p.Name == probeName })
	return [2][]schedconfig.Plugin{append([]schedconfig.Plugin{}, enabled...), append([]schedconfig.Plugin{}, set.Disabled...)}
}
