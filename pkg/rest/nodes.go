package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// nodes answers GET partition/{partition}/nodes.
func (s *Server) nodes(w http.ResponseWriter, _ *http.Request) {
	v := s.options.Inventory.View()
	documents.SetHeader(w)
	p := documents.NewPage(w)
	p.Nodes(v, s.options.NodeLabels)
	_ = p.Done()
}

// node answers GET partition/{partition}/node/{node}.
func (s *Server) node(w http.ResponseWriter, r *http.Request) {
	v, name := s.options.Inventory.View(), r.PathValue("node")
	n := v.Node(name)
	if n == nil {
		documents.Refuse(w, http.StatusNotFound, "Node not found", "there is no node "+name)
		return
	}
	documents.SetHeader(w)
	p := documents.NewPage(w)
	p.Node(v, n, s.options.NodeLabels(n.Name))
	_ = p.Done()
}

// nodeUtilizations answers GET scheduler/node-utilizations.
func (s *Server) nodeUtilizations(w http.ResponseWriter, _ *http.Request) {
	v := s.options.Inventory.View()
	documents.Answer(w, []documents.Utilizations{{ClusterID: documents.ClusterID(v), Partition: documents.Partition, Utilizations: documents.UtilizationsOf(v.Nodes)}})
}
