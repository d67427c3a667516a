package rest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// viewed answers with a document about what there is now.
func (s *Server) viewed(document func(v *inventory.View) any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		documents.Answer(w, document(s.options.Inventory.View()))
	}
}

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

func (s *Server) partitionList(v *inventory.View) []documents.PartitionInfo {
	capacity, used := v.Queues.Capacity(), v.Queues.Root().Allocated
	apps := map[string]int{"total": len(v.Applications)}
	for _, a := range v.Applications {
		apps[documents.StateOf(a.AppRecord)]++
	}
	return []documents.PartitionInfo{{
		ClusterID: documents.ClusterID(v), Name: documents.Partition,
		Capacity: documents.PartitionCapacity{
			Capacity: capacity.Map(), UsedCapacity: used.Map(),
			Utilization: documents.Percent(used, resources.LimitFrom(capacity.Map())),
		},
		NodeSortingPolicy: documents.NodeSortingPolicy{Type: documents.SortedByProfile},
		PreemptionEnabled: v.Spec.PreemptionEnabled, TotalNodes: len(v.Nodes),
		Applications: apps, TotalContainers: v.Containers(),
		State: "Active", LastStateTransitionTime: s.started.UnixNano(),
	}}
}

// nodes answers GET partition/{partition}/nodes.
func (s *Server) nodes(w http.ResponseWriter, _ *http.Request) {
	documents.Write(w, func(p *documents.JSONWriter) { p.Nodes(s.options.Inventory.View(), s.options.NodeLabels) })
}

// node answers GET partition/{partition}/node/{node}.
func (s *Server) node(w http.ResponseWriter, r *http.Request) {
	v, name := s.options.Inventory.View(), r.PathValue("node")
	n := v.Node(name)
	if n == nil {
		documents.Refuse(w, http.StatusNotFound, "Node not found", "there is no node "+name)
		return
	}
	documents.Write(w, func(p *documents.JSONWriter) { p.Node(v, n, s.options.NodeLabels(n.Name)) })
}

// user answers GET partition/{partition}/usage/user/{user}.
func (s *Server) user(w http.ResponseWriter, r *http.Request) {
	name := func(u documents.UserUsage) string { return u.UserName }
	usage(w, r, "user", documents.UsersOf(s.options.Inventory.View()), name, "User not found", "no application of user %s runs")
}

// group answers GET partition/{partition}/usage/group/{group}.
func (s *Server) group(w http.ResponseWriter, r *http.Request) {
	name := func(g documents.GroupUsage) string { return g.GroupName }
	usage(w, r, "group", documents.GroupsOf(s.options.Inventory.View()), name, "Group not found", "no application runs that limits of group %s hold for")
}

// usage answers with the one of all that has the name in a part of the path, or else that
// there is none.
func usage[T any](w http.ResponseWriter, r *http.Request, part string, all []T, name func(T) string, title, none string) {
	i, ok := named(r, part, func(given string) (int, bool) {
		i := slices.IndexFunc(all, func(one T) bool { return name(one) == given })
		return i, i >= 0
	})
	if !ok {
		documents.Refuse(w, http.StatusNotFound, title, fmt.Sprintf(none, r.PathValue(part)))
		return
	}
	documents.Answer(w, all[i])
}

// metrics answers GET metrics: YuniKorn's names, in the text format of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	documents.SetHeader(w)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	err := metrics.WriteYuniKorn(w, s.options.Inventory.View())
	if errors.Is(err, metrics.ErrGather) { // for any other error the reader has gone away
		klog.Background().Error(err, "Metrics cannot be shown")
		documents.Refuse(w, http.StatusInternalServerError, "Metrics not known", err.Error())
	}
}

// decisions answers GET /api/v1/decisions.
func (s *Server) decisions(w http.ResponseWriter, r *http.Request) {
	q, err := documents.QueryOf(r.URL.Query(), "victim")
	if err != nil {
		documents.Refuse(w, http.StatusBadRequest, "Bad query", err.Error())
		return
	}
	documents.Write(w, func(p *documents.JSONWriter) {
		p.Open('{')
		p.Key("decisions")
		p.Open('[')
		for _, d := range s.options.Record.Decisions(q) {
			if p.Failed() {
				break
			}
			p.Value(d)
		}
		p.Close(']')
		p.NumberField("lost", s.options.Record.Lost())
		p.Close('}')
	})
}
