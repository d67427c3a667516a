package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
	"github.com/paddock-scheduler/paddock/pkg/plugins/profiles"
)

// profilesOf makes the scheduler of a configuration and returns the plugins of
// its profiles. A document without profiles is upstream's default.
func profilesOf(t *testing.T, document []byte) map[string]*schedconfig.Plugins {
	t.Helper()
	cc, sched, err := setUp(t, parse(t, "--config="+configFile(t, document)))
	expect.OK(t, err)
	effective := profiles.Effective(sched.Profiles)
	expect.Holds(t, profiles.Check(&cc.ComponentConfig, effective))
	return effective
}

func set(names ...string) schedconfig.PluginSet {
	var list schedconfig.PluginSet
	for _, name := range names {
		list.Enabled = append(list.Enabled, schedconfig.Plugin{Name: name})
	}
	return list
}

func with(list schedconfig.PluginSet, names ...string) schedconfig.PluginSet {
	return schedconfig.PluginSet{Enabled: slices.Concat(list.Enabled, set(names...).Enabled)}
}

// managedProfile is the profile yunikorn: what upstream runs, and ours after it.
func managedProfile(upstream *schedconfig.Plugins) *schedconfig.Plugins {
	want := upstream.DeepCopy()
	want.QueueSort = set("QueueSort")
	want.PreEnqueue = with(upstream.PreEnqueue, "QueueSort")
	want.PreFilter = with(upstream.PreFilter, "QueuePreemption")
	want.Filter = with(upstream.Filter, "NodeReservation")
	want.PostFilter = set("QueuePreemption", "DynamicResources")
	want.Reserve = with(upstream.Reserve, "NodeReservation")
	want.Permit = with(upstream.Permit, "NodeReservation")
	want.PostBind = with(upstream.PostBind, "NodeReservation")
	return want
}

// sorted sorts the list of PreEnqueue plugins, which upstream keeps in the order of a map.
func sorted(plugins map[string]*schedconfig.Plugins) map[string]*schedconfig.Plugins {
	for _, lists := range plugins {
		slices.SortFunc(lists.PreEnqueue.Enabled, func(a, b schedconfig.Plugin) int {
			return strings.Compare(a.Name, b.Name)
		})
	}
	return plugins
}

// TestShippedConfigurations: the shipped configurations run what upstream runs, and ours.
func TestShippedConfigurations(t *testing.T) {
	const nothing = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	upstream := profilesOf(t, []byte(nothing))["default-scheduler"]
	managed := managedProfile(upstream)
	unmanaged := upstream.DeepCopy()
	unmanaged.QueueSort = set("QueueSort")
	unmanaged.Filter = with(upstream.Filter, "NodeReservation")
	// The DaemonSet rules add QueuePreemption and the gate it needs, and leave
	// DefaultPreemption in its place.
	daemonSets := unmanaged.DeepCopy()
	daemonSets.PreEnqueue = with(upstream.PreEnqueue, "QueueSort")
	daemonSets.PreFilter = with(upstream.PreFilter, "QueuePreemption")
	daemonSets.PostFilter = set("DynamicResources", "QueuePreemption", "DefaultPreemption")
	podGroups := managed.DeepCopy()
	last := len(podGroups.PreFilter.Enabled) - 1
	podGroups.PreFilter.Enabled = slices.Insert(podGroups.PreFilter.Enabled, last, set("Coscheduling").Enabled...)
	podGroups.PostFilter = set("QueuePreemption", "Coscheduling", "DynamicResources")
	podGroups.Reserve = with(podGroups.Reserve, "Coscheduling")
	podGroups.Permit = with(podGroups.Permit, "Coscheduling")
	type byProfile = map[string]*schedconfig.Plugins
	for name, c := range map[string]struct {
		shipped []byte
		want    byProfile
	}{
		"second scheduler": {manifests.SecondScheduler, byProfile{"yunikorn": managed}},
		"two profiles": {manifests.TwoProfiles,
			byProfile{"yunikorn": managed, "default-scheduler": unmanaged}},
		"two profiles, DaemonSets": {manifests.TwoProfilesDaemonSets,
			byProfile{"yunikorn": managed, "default-scheduler": daemonSets}},
		"with PodGroups": {manifests.WithPodGroups, byProfile{"yunikorn": podGroups}},
	} {
		expect.Same(t, name+": plugins", sorted(c.want), sorted(profilesOf(t, withoutREST(t, c.shipped))))
	}
}

// Every case is a configuration below its type, and what the command says about
// it before it would begin to schedule: the whole list.
func TestCheckConfiguration(t *testing.T) {
	const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	datadriven.RunTest(t, "testdata/check.txt", func(t *testing.T, d *datadriven.TestData) string {
		cc, sched, err := setUp(t, parse(t, "--config="+configFile(t, []byte(header+d.Input))))
		if err != nil {
			return "setup: " + err.Error() + "\n"
		}
		if err := profiles.Check(&cc.ComponentConfig, profiles.Effective(sched.Profiles)); err != nil {
			return err.Error() + "\n"
		}
		return "fine\n"
	})
}
