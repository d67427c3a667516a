package profiles

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

// Effective returns the plugins of each profile of a scheduler as they will be called:
// defaults merged in, in order.
func Effective(made map[string]framework.Framework) map[string]*schedconfig.Plugins {
	effective := make(map[string]*schedconfig.Plugins, len(made))
	for name, profile := range made {
		effective[name] = profile.ListPlugins()
	}
	return effective
}

// Check reports everything in which a configuration would start and then not do what it
// says: quotas that are not enforced, held nodes that are given away, a lease that another
// scheduler has. The plugins are those of [Effective]. Without our QueueSort there are no
// queues, and nothing to check.
func Check(cfg *schedconfig.KubeSchedulerConfiguration, plugins map[string]*schedconfig.Plugins) error {
	args := queueSortArgs(cfg, plugins)
	if args == nil {
		return nil
	}
	errs := append(checkLease(cfg), checkBackoff(cfg, args)...)
	for _, managed := range args.ManagedProfiles {
		if plugins[managed] == nil {
			errs = append(errs, fmt.Errorf("managedProfiles of QueueSort names %q, but there is no such profile", managed))
		}
	}
	for _, profile := range cfg.Profiles {
		lists := plugins[profile.SchedulerName]
		check := profileCheck{profile: profile.SchedulerName}
		check.enabled("filter", lists.Filter, reservation.Name)
		managed := slices.Contains(args.ManagedProfiles, profile.SchedulerName)
		if managed {
			check.managed(lists)
		} else if slices.Contains(namesOf(lists.PostFilter), preemption.Name) {
			check.daemons(lists)
		}
		check.order(lists, managed)
		errs = append(errs, check.errs...)
	}
	return errors.Join(errs...)
}

// queueSortArgs returns the arguments of our QueueSort, which are equal in all
// profiles; nil if it is not the one that sorts.
func queueSortArgs(
	cfg *schedconfig.KubeSchedulerConfiguration, plugins map[string]*schedconfig.Plugins,
) *config.QueueSortArgs {
	for _, profile := range cfg.Profiles {
		if !slices.Contains(namesOf(plugins[profile.SchedulerName].QueueSort), queuesort.Name) {
			continue
		}
		for _, plugin := range profile.PluginConfig {
			if args, ok := plugin.Args.(*config.QueueSortArgs); ok {
				return args
			}
		}
	}
	return nil
}

// checkLease refuses the lease that upstream's defaults name where the cluster's own
// scheduler keeps running: whichever of the two has it, the pods of the other wait.
func checkLease(cfg *schedconfig.KubeSchedulerConfiguration) []error {
	election := cfg.LeaderElection
	if !election.LeaderElect || election.ResourceName != upstreamLease || election.ResourceNamespace != metav1.NamespaceSystem {
		return nil
	}
	for _, profile := range cfg.Profiles {
		if profile.SchedulerName == corev1.DefaultSchedulerName {
			return nil // it replaces the cluster's own
		}
	}
	return []error{fmt.Errorf("leaderElection.resourceName is %q, the lease of the cluster's own scheduler, and no profile is %q: "+
		"write leaderElection: {resourceName: paddock-scheduler}", upstreamLease, corev1.DefaultSchedulerName)}
}

// upstreamLease is the name by default of the lease, in kube-system.
const upstreamLease = "kube-scheduler"

func checkBackoff(cfg *schedconfig.KubeSchedulerConfiguration, args *config.QueueSortArgs) []error {
	var errs []error
	for _, pair := range []struct {
		ours     string
		value    time.Duration
		upstream string
		seconds  int64
	}{
		{"podInitialBackoff", args.PodInitialBackoff.Duration, "podInitialBackoffSeconds", cfg.PodInitialBackoffSeconds},
		{"podMaxBackoff", args.PodMaxBackoff.Duration, "podMaxBackoffSeconds", cfg.PodMaxBackoffSeconds},
	} {
		if pair.value != time.Duration(pair.seconds)*time.Second {
			errs = append(errs, fmt.Errorf("%s of QueueSort is %s, but %s is %d: make them equal",
				pair.ours, pair.value, pair.upstream, pair.seconds))
		}
	}
	return errs
}

// profileCheck collects the errors of one profile.
type profileCheck struct {
	profile string
	errs    []error
}

func (c *profileCheck) addf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("profile %q: "+format, append([]any{c.profile}, args...)...))
}

func (c *profileCheck) enabled(point string, list schedconfig.PluginSet, plugin string) {
	if !slices.Contains(namesOf(list), plugin) {
		c.addf("enable %s at %s", plugin, point)
	}
}

// managed checks a profile of pods that belong to queues.
func (c *profileCheck) managed(lists *schedconfig.Plugins) {
	c.enabled("preEnqueue", lists.PreEnqueue, queuesort.Name)
	c.enabled("preFilter", lists.PreFilter, preemption.Name)
	c.enabled("postFilter", lists.PostFilter, preemption.Name)
	c.enabled("reserve", lists.Reserve, reservation.Name)
	c.enabled("permit", lists.Permit, reservation.Name)
	if slices.Contains(namesOf(lists.PostFilter), names.DefaultPreemption) {
		c.addf("disable %s at postFilter: it knows no queues, and would evict pods for pods to which the laws of preemption refuse it. "+
			"List \"*\" under disabled there, and %s and %s under enabled", names.DefaultPreemption, preemption.Name, names.DynamicResources)
	}
}

// daemons checks an unmanaged profile whose DaemonSet pods may preempt. Without
// QueuePreemption at preFilter, two holders of one node block each other by their
// nominations. Without QueueSort at preEnqueue, waiting pods are tried whenever a pod ends
// on any node.
func (c *profileCheck) daemons(lists *schedconfig.Plugins) {
	c.enabled("preFilter", lists.PreFilter, preemption.Name)
	c.enabled("preEnqueue", lists.PreEnqueue, queuesort.Name)
}

// order checks the two lists in which the place of QueuePreemption matters. Its refusal at
// preFilter ends that list, and its postFilter needs the state that the other preFilter
// plugins write. The first plugin at postFilter that finds victims ends that list. In a
// managed profile no other plugin looks for victims.
func (c *profileCheck) order(lists *schedconfig.Plugins, managed bool) {
	before := namesOf(lists.PreFilter)
	if i := slices.Index(before, preemption.Name); i >= 0 && i != len(before)-1 {
		c.addf("%s must be the last at preFilter, but the list is %q", preemption.Name, before)
	}
	after := namesOf(lists.PostFilter)
	ours, upstreams := slices.Index(after, preemption.Name), slices.Index(after, names.DefaultPreemption)
	if !managed && ours >= 0 && upstreams >= 0 && upstreams < ours {
		c.addf("%s must come before %s at postFilter, but the list is %q: disable \"*\" there and enable all in order",
			preemption.Name, names.DefaultPreemption, after)
	}
}

func namesOf(set schedconfig.PluginSet) []string {
	list := make([]string, len(set.Enabled))
	for i, plugin := range set.Enabled {
		list[i] = plugin.Name
	}
	return list
}
