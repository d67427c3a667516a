package rest

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
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
	Capacity     map[string]int64 `json:"capacity,omitempty"`
	UsedCapacity map[string]int64 `json:"usedCapacity,omitempty"`
	// Utilization is in percent.
	Utilization map[string]int64 `json:"utilization,omitempty"`
}

// NodeSortingPolicy says who chooses among nodes: not a policy of the partition,
// but the profile's score plugins.
type NodeSortingPolicy struct {
	Type string `json:"type"`
}

// BuildInformation says what this program was built from: what the go command
// wrote into it, by YuniKorn's names.
func BuildInformation() map[string]string {
	out := map[string]string{"rmId": DefaultClusterID, "arch": runtime.GOARCH, "goVersion": strings.TrimPrefix(runtime.Version(), "go")}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	out["buildVersion"] = info.Main.Version
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.time":
			out["buildDate"], _, _ = strings.Cut(setting.Value, "T")
		case "vcs.revision":
			out["coreSHA"], out["shimSHA"] = setting.Value, setting.Value
		}
	}
	return out
}

// sortedByProfile is the type of node sorting here.
const sortedByProfile = "kube-scheduler"

func (s *Server) clusterList() []Cluster {
	return []Cluster{{
		StartTime: s.started.UnixNano(), RMBuildInformation: []map[string]string{s.build},
		Partition: Partition, ClusterName: "kubernetes",
	}}
}

// clusters answers GET clusters.
func (s *Server) clusters(w http.ResponseWriter, _ *http.Request) { answer(w, s.clusterList()) }

func (s *Server) partitionList(v *inventory.View) []PartitionInfo {
	capacity, used := v.Queues.Capacity(), v.Queues.Root().Allocated
	apps := map[string]int{"total": len(v.Applications)}
	for _, a := range v.Applications {
		apps[stateOf(a.AppRecord)]++
	}
	return []PartitionInfo{{
		ClusterID: s.clusterID, Name: Partition,
		Capacity: PartitionCapacity{
			Capacity: amounts(capacity.Map()), UsedCapacity: amounts(used.Map()),
			Utilization: percent(used, resources.LimitFrom(capacity.Map())),
		},
		NodeSortingPolicy: NodeSortingPolicy{Type: sortedByProfile},
		PreemptionEnabled: v.Spec.PreemptionEnabled, TotalNodes: len(v.Nodes),
		Applications: apps, TotalContainers: v.Containers(),
		State: "Active", LastStateTransitionTime: s.started.UnixNano(),
	}}
}

// partitions answers GET partitions.
func (s *Server) partitions(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.partitionList(s.inventory.View()))
}
