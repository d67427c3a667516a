package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// decisions answers GET /api/v1/decisions.
func (s *Server) decisions(w http.ResponseWriter, r *http.Request) {
	q, err := documents.QueryOf(r.URL.Query(), "victim")
	switch {
	case err != nil:
		documents.Refuse(w, http.StatusBadRequest, "Bad query", err.Error())
		return
	case s.options.Record == nil:
		documents.Refuse(w, http.StatusNotFound, "Not recorded", "this scheduler keeps no record of its decisions")
		return
	}
	documents.SetHeader(w)
	p := documents.NewPage(w)
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
	_ = p.Done()
}
