package withours

import (
	"os"
	"path/filepath"
	"testing"

	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

func TestEachProfileCarriesOurPlugins(t *testing.T) {
	type plugins = []schedconfig.Plugin
	own := schedconfig.KubeSchedulerProfile{
		Plugins: &schedconfig.Plugins{
			QueueSort: schedconfig.PluginSet{Enabled: plugins{{Name: "Other"}}},
			Filter:    schedconfig.PluginSet{Enabled: plugins{{Name: "Mine"}}},
		},
		PluginConfig: []schedconfig.PluginConfig{{Name: "Mine"}},
	}
	before := own.DeepCopy()
	for _, c := range []struct {
		name    string
		profile schedconfig.KubeSchedulerProfile
		filters plugins
		config  []schedconfig.PluginConfig
	}{
		{name: "a profile without plugins", filters: plugins{{Name: reservation.Name}}, config: ours()},
		{
			name: "a profile with plugins", profile: own, filters: plugins{{Name: "Mine"}, {Name: reservation.Name}},
			config: append(own.PluginConfig, ours()...),
		},
	} {
		got := carry(&c.profile)
		expect.Same(t, c.name+": order", plugins{{Name: queuesort.Name}}, got.Plugins.QueueSort.Enabled)
		expect.Same(t, c.name+": filters", c.filters, got.Plugins.Filter.Enabled)
		expect.Same(t, c.name+": arguments", c.config, got.PluginConfig)
	}
	expect.Same(t, "the profile that was given", *before, own)
	withArguments := []string{ours()[0].Name, ours()[1].Name}
	expect.Same(t, "our plugins with arguments", []string{queuesort.Name, reservation.Name}, withArguments)
}

// A planted hold filter needs no arguments; ours cannot be made without.
func TestAHoldIsPlantedOnDemandOnly(t *testing.T) {
	for plant, planted := range map[string]bool{"": false, Order: false, Hold: true, Nominated: true, Victims: true} {
		t.Setenv(Planted, plant)
		filter, err := registry()[reservation.Name](t.Context(), nil, nil)
		got := err == nil && filter != nil
		expect.That(t, got == planted, "%q: a filter was made without arguments: %t (error %v)", plant, got, err)
	}
}

func TestASchedulerLeavesItsMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made")
	t.Setenv(Mark, path)
	r := registry()
	_, err := os.Stat(path)
	expect.That(t, err != nil, "a mark without a scheduler")
	_, _ = r[queuesort.Name](t.Context(), nil, nil) // it requires arguments
	_, err = os.Stat(path)
	expect.Holds(t, err)
}
