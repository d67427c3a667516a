package documents

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Cluster is the cluster as YuniKorn's interface shows it.
type Cluster struct {
	// StartTime is when this process started, in nanoseconds since 1970.
	StartTime int64 `json:"startTime"`
	// RMBuildInformation says what was built: one entry.
	RMBuildInformation []map[string]string `json:"rmBuildInformation"`
	Partition          string              `json:"partition"`
	ClusterName        string              `json:"clusterName"`
}

// PartitionInfo is the only partition as YuniKorn's interface shows it.
type PartitionInfo struct {
	ClusterID              string            `json:"clusterId"`
	Name                   string            `json:"name"`
	Capacity               PartitionCapacity `json:"capacity"`
	NodeSortingPolicy      NodeSortingPolicy `json:"nodeSortingPolicy"`
	PreemptionEnabled      bool              `json:"preemptionEnabled"`
	QuotaPreemptionEnabled bool              `json:"quotaPreemptionEnabled"`
	TotalNodes             int               `json:"totalNodes"`
	// Applications counts the active applications by state, and as total.
	Applications map[string]int `json:"applications"`
	// TotalContainers counts the pods of queues that have a node.
	TotalContainers         int    `json:"totalContainers"`
	State                   string `json:"state"`
	LastStateTransitionTime int64  `json:"lastStateTransitionTime"`
}

// PartitionCapacity is what the nodes hold, and what pods of queues use of it.
type PartitionCapacity struct {
	Capacity     map[string]resources.Amount `json:"capacity,omitempty"`
	UsedCapacity map[string]resources.Amount `json:"usedCapacity,omitempty"`
	// Utilization is in percent.
	Utilization map[string]resources.Amount `json:"utilization,omitempty"`
}

// NodeSortingPolicy says what chooses among nodes: the profile's score plugins, not a
// policy of the partition.
type NodeSortingPolicy struct {
	Type string `json:"type"`
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

// SortedByProfile is the type of node sorting here.
const SortedByProfile = "kube-scheduler"
