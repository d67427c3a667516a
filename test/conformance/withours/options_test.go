package withours

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

func TestEachProfileCarriesOurPlugins(t *testing.T) {
	own := schedconfig.KubeSchedulerProfile{
		SchedulerName: "own",
		Plugins: &schedconfig.Plugins{
			QueueSort: schedconfig.PluginSet{Enabled: []schedconfig.Plugin{{Name: "Other"}}},
			Filter:    schedconfig.PluginSet{Enabled: []schedconfig.Plugin{{Name: "Mine"}}},
		},
		PluginConfig: []schedconfig.PluginConfig{{Name: "Mine"}},
	}
	for _, profile := range []schedconfig.KubeSchedulerProfile{own, {SchedulerName: "empty"}} {
		got := carry(&profile)
		if want := []schedconfig.Plugin{{Name: queuesort.Name}}; !slices.Equal(got.Plugins.QueueSort.Enabled, want) {
			t.Errorf("%s: order of the queue %v, want %v", profile.SchedulerName, got.Plugins.QueueSort.Enabled, want)
		}
		if !slices.Contains(got.Plugins.Filter.Enabled, schedconfig.Plugin{Name: reservation.Name}) {
			t.Errorf("%s: filters %v, want %s among them", profile.SchedulerName, got.Plugins.Filter.Enabled, reservation.Name)
		}
		var configured []string
		for _, c := range got.PluginConfig {
			configured = append(configured, c.Name)
		}
		for _, name := range []string{queuesort.Name, reservation.Name} {
			if !slices.Contains(configured, name) {
				t.Errorf("%s: arguments of %v, want those of %s", profile.SchedulerName, configured, name)
			}
		}
	}
	if got := carry(&own); got.Plugins.Filter.Enabled[0].Name != "Mine" || got.PluginConfig[0].Name != "Mine" {
		t.Errorf("the plugins of the profile's own are gone: %+v", got)
	}
	if own.Plugins.QueueSort.Enabled[0].Name != "Other" || len(own.Plugins.Filter.Enabled) != 1 {
		t.Error("the profile that was given was changed")
	}
}

// A planted hold filter needs no arguments; ours cannot be made without.
func TestAHoldIsPlantedOnDemandOnly(t *testing.T) {
	for plant, planted := range map[string]bool{"": false, Order: false, Hold: true, Nominated: true, Victims: true} {
		t.Setenv(Planted, plant)
		filter, err := registry()[reservation.Name](t.Context(), nil, nil)
		if got := err == nil && filter != nil; got != planted {
			t.Errorf("%q: a filter was made without arguments: %t, want %t (error %v)", plant, got, planted, err)
		}
	}
}

func TestASchedulerLeavesItsMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made")
	t.Setenv(Mark, path)
	r := registry()
	if _, err := os.Stat(path); err == nil {
		t.Error("a mark without a scheduler")
	}
	_, _ = r[queuesort.Name](t.Context(), nil, nil) // it requires arguments
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
