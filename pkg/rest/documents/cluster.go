package documents

import (
	"cmp"
	"maps"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Clusters writes the list of clusters: this one, what was built, and when the process started.
func (p *JSONWriter) Clusters(v *inventory.View, build map[string]string, started time.Time) {
	build = maps.Clone(build)
	if build["rmId"] != "" {
		build["rmId"] = ClusterID(v)
	}
	p.Open('[')
	p.Open('{')
	p.TimeField("startTime", started)
	p.Field("rmBuildInformation", []map[string]string{build})
	p.TextField("partition", Partition)
	p.TextField("clusterName", "kubernetes")
	p.Close('}')
	p.Close(']')
}

// Partitions writes the list of partitions. There is only one.
func (p *JSONWriter) Partitions(v *inventory.View, started time.Time) {
	capacity, used := v.Queues.Capacity(), v.Queues.Root().Allocated
	apps := map[string]int{"total": len(v.Applications)}
	for _, a := range v.Applications {
		apps[StateOf(a.AppRecord)]++
	}
	p.Open('[')
	p.Open('{')
	p.TextField("clusterId", ClusterID(v))
	p.TextField("name", Partition)
	p.Key("capacity")
	p.Open('{')
	p.amountsField("capacity", capacity)
	p.amountsField("usedCapacity", used)
	p.quotaField("utilization", Percents(used, resources.LimitFrom(capacity.Map())))
	p.Close('}')
	// The score plugins of the profile choose among nodes, and no policy of the partition.
	p.Field("nodeSortingPolicy", map[string]string{"type": "kube-scheduler"})
	p.boolField("preemptionEnabled", v.Spec.PreemptionEnabled)
	p.boolField("quotaPreemptionEnabled", false)
	p.Field("totalNodes", len(v.Nodes))
	p.Field("applications", apps)
	p.Field("totalContainers", used.Get(resources.Pods))
	p.TextField("state", "Active")
	p.TimeField("lastStateTransitionTime", started)
	p.Close('}')
	p.Close(']')
}

// The build sets these with -X. Each is empty for a program that was built without them.
var (
	// BuildVersion is the version of this project.
	BuildVersion string
	// BuildCommit is the commit.
	BuildCommit string
	// BuildDate is the day of the commit as YYYY-MM-DD.
	BuildDate string
)

// BuildInformation says what this program was built from, by YuniKorn's names.
// What the build did not set is what the go command wrote into the program, and
// absent where it wrote nothing.
func BuildInformation() map[string]string {
	out := map[string]string{"rmId": defaultClusterID, "arch": runtime.GOARCH, "goVersion": strings.TrimPrefix(runtime.Version(), "go")}
	version, commit, date := BuildVersion, BuildCommit, BuildDate
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(version, info.Main.Version)
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.time":
				day, _, _ := strings.Cut(setting.Value, "T")
				date = cmp.Or(date, day)
			case "vcs.revision":
				commit = cmp.Or(commit, setting.Value)
			}
		}
	}
	for name, value := range map[string]string{"buildVersion": version, "buildDate": date, "coreSHA": commit, "shimSHA": commit} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}
