package withours

import (
	"fmt"
	"maps"
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

// Options are the options of a scheduler that names neither profiles nor plugins of its
// own, followed by its own options. It panics if the default profile cannot be made,
// which depends only on feature gates.
func Options(own ...scheduler.Option) []scheduler.Option {
	var versioned configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var cfg schedconfig.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &cfg, nil); err != nil {
		panic(fmt.Sprintf("the default profile: %v", err))
	}
	return append([]scheduler.Option{WithProfiles(cfg.Profiles...), WithRegistry(nil)}, own...)
}

// WithProfiles is scheduler.WithProfiles, with our plugins in each profile.
func WithProfiles(profiles ...schedconfig.KubeSchedulerProfile) scheduler.Option {
	carried := make([]schedconfig.KubeSchedulerProfile, 0, len(profiles))
	for i := range profiles {
		carried = append(carried, carry(&profiles[i]))
	}
	return scheduler.WithProfiles(carried...)
}

// WithRegistry is scheduler.WithFrameworkOutOfTreeRegistry, with our plugins beside those
// of the argument, which may be nil.
func WithRegistry(own frameworkruntime.Registry) scheduler.Option {
	all := registry()
	maps.Copy(all, own)
	return scheduler.WithFrameworkOutOfTreeRegistry(all)
}

// carry returns a copy of the profile that orders its pods by our QueueSort and keeps
// them off held nodes. A profile without plugins, which does nothing, gets these two.
func carry(profile *schedconfig.KubeSchedulerProfile) schedconfig.KubeSchedulerProfile {
	p := profile.DeepCopy()
	if p.Plugins == nil {
		p.Plugins = &schedconfig.Plugins{}
	}
	p.Plugins.QueueSort = schedconfig.PluginSet{
		Enabled: []schedconfig.Plugin{{Name: queuesort.Name}}, Disabled: []schedconfig.Plugin{{Name: "*"}},
	}
	p.Plugins.Filter.Enabled = append(p.Plugins.Filter.Enabled, schedconfig.Plugin{Name: reservation.Name})
	p.PluginConfig = slices.Concat(p.PluginConfig, ours())
	return *p
}

// ours are the arguments of our plugins: the defaults, except that no REST server listens,
// because suites make many schedulers in one process.
func ours() []schedconfig.PluginConfig {
	sorts, holds := &config.QueueSortArgs{ManagedProfiles: []string{"yunikorn"}, RESTAddress: new("")}, &config.NodeReservationArgs{}
	sorts.SetDefaults()
	holds.SetDefaults()
	return []schedconfig.PluginConfig{{Name: queuesort.Name, Args: sorts}, {Name: reservation.Name, Args: holds}}
}
