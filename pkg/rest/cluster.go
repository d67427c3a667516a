package rest

import (
	"maps"
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

func (s *Server) clusterList(v *inventory.View) []documents.Cluster {
	build := maps.Clone(s.options.Build)
	if build["rmId"] != "" {
		build["rmId"] = documents.ClusterID(v)
	}
	return []documents.Cluster{{
		StartTime: s.started.UnixNano(), RMBuildInformation: []map[string]string{build},
		Partition: documents.Partition, ClusterName: "kubernetes",
	}}
}

// clusters answers GET clusters.
func (s *Server) clusters(w http.ResponseWriter, _ *http.Request) {
	documents.Answer(w, s.clusterList(s.options.Inventory.View()))
}

func (s *Server) partitionList(v *inventory.View) []documents.PartitionInfo {
	capacity, used := v.Queues.Capacity(), v.Queues.Root().Allocated
	apps := map[string]int{"total": len(v.Applications)}
	for _, a := range v.Applications {
		apps[documents.StateOf(a.AppRecord)]++
	}
	return []documents.PartitionInfo{{
		ClusterID: documents.ClusterID(v), Name: documents.Partition,
		Capacity: documents.PartitionCapacity{
			Capacity: documents.Amounts(capacity.Map()), UsedCapacity: documents.Amounts(used.Map()),
			Utilization: documents.Percent(used, resources.LimitFrom(capacity.Map())),
		},
		NodeSortingPolicy: documents.NodeSortingPolicy{Type: documents.SortedByProfile},
		PreemptionEnabled: v.Spec.PreemptionEnabled, TotalNodes: len(v.Nodes),
		Applications: apps, TotalContainers: v.Containers(),
		State: "Active", LastStateTransitionTime: s.started.UnixNano(),
	}}
}

// partitions answers GET partitions.
func (s *Server) partitions(w http.ResponseWriter, _ *http.Request) {
	documents.Answer(w, s.partitionList(s.options.Inventory.View()))
}
