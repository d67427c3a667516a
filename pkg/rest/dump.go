package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// fullStateDump answers GET fullstatedump: everything. Queues, nodes, applications and pods are
// of one moment.
func (s *Server) fullStateDump(w http.ResponseWriter, _ *http.Request) {
	v, now := s.options.Inventory.View(), s.options.Clock.Now()
	documents.Write(w, func(p *documents.JSONWriter) { s.dump(p, v, now) })
}

func (s *Server) dump(p *documents.JSONWriter, v *inventory.View, now time.Time) {
	p.Open('{')
	p.TimeField("timestamp", now)
	p.Key("partitions")
	s.partitions(p, v)
	p.Key("applications")
	p.Applications(s.options.Inventory, v, v.Applications, nil, now)
	if p.Failed() {
		return
	}
	p.Field("appHistory", s.history.AppSamples())
	p.Key("nodes")
	p.Open('[')
	p.Open('{')
	p.TextField("partitionName", documents.Partition)
	p.Key("nodesInfo")
	s.nodes(p, v)
	p.Close('}')
	p.Close(']')
	p.Key("clusterInfo")
	s.clusters(p, v)
	p.Field("containerHistory", s.history.ContainerSamples())
	p.Key("queues")
	p.Open('[')
	queueTree(p, v)
	p.Close(']')
	if _, document, err := s.documents.Of(v.Spec); err == nil && documents.HasConfig(v) {
		p.Field("config", json.RawMessage(document))
	}
	if open := s.streams.list(); len(open) > 0 {
		p.Field("eventStreams", open)
	}
	p.Key("placementRules")
	p.Open('[')
	p.Open('{')
	p.TextField("partition", documents.Partition)
	p.Key("rules")
	p.Rules(v)
	p.Close('}')
	p.Close(']')
	p.Close('}')
}
