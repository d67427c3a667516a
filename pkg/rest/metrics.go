package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// metrics answers GET metrics: YuniKorn's names, in the text format of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	documents.SetHeader(w)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_ = metrics.WriteYuniKorn(w, s.options.Inventory.View()) // the reader has gone away
}
