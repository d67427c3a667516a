package rest

import (
	"encoding/json"
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// fullStateDump answers GET fullstatedump: everything, of one moment.
func (s *Server) fullStateDump(w http.ResponseWriter, _ *http.Request) {
	v, now := s.inventory.View(), s.clock.Now()
	header(w)
	p := newPage(w)
	p.open('{')
	p.timeField("timestamp", now)
	p.field("partitions", s.partitionList(v))
	p.key("applications")
	p.open('[')
	for _, a := range v.Applications {
		if p.failed() {
			return
		}
		p.application(s.inventory, v, a, now)
	}
	p.close(']')
	p.field("appHistory", s.history.appSamples())
	p.key("nodes")
	p.open('[')
	p.open('{')
	p.textField("partitionName", Partition)
	p.key("nodesInfo")
	p.nodes(v, s.labelsOf)
	p.close('}')
	p.close(']')
	p.field("clusterInfo", s.clusterList(v))
	p.field("containerHistory", s.history.containerSamples())
	p.key("queues")
	p.open('[')
	p.queueTree(v, queues.RootID, true)
	p.close(']')
	if _, document, err := s.documents.of(v.Spec); err == nil && read(v) {
		p.field("config", json.RawMessage(document))
	}
	if open := s.streams.list(); len(open) > 0 {
		p.field("eventStreams", open)
	}
	p.field("placementRules", []PartitionRules{{Partition: Partition, Rules: rulesOf(v.Spec)}})
	p.close('}')
	_ = p.done()
}

// PartitionRules are the placement rules of a partition, in a dump.
type PartitionRules struct {
	Partition string `json:"partition"`
	Rules     []Rule `json:"rules"`
}
