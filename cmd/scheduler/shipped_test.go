package main

import (
	"slices"
	"strings"
	"testing"

	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
	"github.com/paddock-scheduler/paddock/pkg/plugins/profiles"
)

// profilesOf makes the scheduler of a configuration and returns the plugins of
// its profiles. An empty document is upstream's default.
func profilesOf(t *testing.T, document []byte) map[string]*schedconfig.Plugins {
	t.Helper()
	cc, sched, err := setUp(t, parse(t, "--config="+configFile(t, document)))
	expect.OK(t, err)
	effective := profiles.Effective(sched.Profiles)
	expect.Holds(t, profiles.Check(&cc.ComponentConfig, effective))
	return effective
}

func upstreamProfile(t *testing.T) *schedconfig.Plugins {
	t.Helper()
	document := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	return profilesOf(t, []byte(document))["default-scheduler"]
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

// sorted sorts the list of PreEnqueue plugins, which upstream keeps in the order
// of a map.
func sorted(plugins map[string]*schedconfig.Plugins) map[string]*schedconfig.Plugins {
	for _, lists := range plugins {
		slices.SortFunc(lists.PreEnqueue.Enabled, func(a, b schedconfig.Plugin) int {
			return strings.Compare(a.Name, b.Name)
		})
	}
	return plugins
}

func compare(t *testing.T, got, want map[string]*schedconfig.Plugins) {
	t.Helper()
	expect.Same(t, "plugins", sorted(want), sorted(got))
}

func TestSecondScheduler(t *testing.T) {
	upstream := upstreamProfile(t)
	got := profilesOf(t, withoutREST(t, manifests.SecondScheduler))
	compare(t, got, map[string]*schedconfig.Plugins{"yunikorn": managedProfile(upstream)})
}

func TestTwoProfiles(t *testing.T) {
	upstream := upstreamProfile(t)
	unmanaged := upstream.DeepCopy()
	unmanaged.QueueSort = set("QueueSort")
	unmanaged.Filter = with(upstream.Filter, "NodeReservation")
	got := profilesOf(t, withoutREST(t, manifests.TwoProfiles))
	compare(t, got, map[string]*schedconfig.Plugins{
		"yunikorn":          managedProfile(upstream),
		"default-scheduler": unmanaged,
	})
}

// The DaemonSet rules for default-scheduler add QueuePreemption and the gate it needs,
// and leave DefaultPreemption in its place.
func TestTwoProfilesDaemonSets(t *testing.T) {
	upstream := upstreamProfile(t)
	unmanaged := upstream.DeepCopy()
	unmanaged.QueueSort = set("QueueSort")
	unmanaged.PreEnqueue = with(upstream.PreEnqueue, "QueueSort")
	unmanaged.PreFilter = with(upstream.PreFilter, "QueuePreemption")
	unmanaged.Filter = with(upstream.Filter, "NodeReservation")
	unmanaged.PostFilter = set("DynamicResources", "QueuePreemption", "DefaultPreemption")
	got := profilesOf(t, withoutREST(t, manifests.TwoProfilesDaemonSets))
	compare(t, got, map[string]*schedconfig.Plugins{
		"yunikorn":          managedProfile(upstream),
		"default-scheduler": unmanaged,
	})
}

func TestWithPodGroups(t *testing.T) {
	want := managedProfile(upstreamProfile(t))
	last := len(want.PreFilter.Enabled) - 1
	want.PreFilter.Enabled = slices.Insert(want.PreFilter.Enabled, last, schedconfig.Plugin{Name: "Coscheduling"})
	want.PostFilter = set("QueuePreemption", "Coscheduling", "DynamicResources")
	want.Reserve = with(want.Reserve, "Coscheduling")
	want.Permit = with(want.Permit, "Coscheduling")
	got := profilesOf(t, withoutREST(t, manifests.WithPodGroups))
	compare(t, got, map[string]*schedconfig.Plugins{"yunikorn": want})
}
