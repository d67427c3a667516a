package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// holds answers GET /api/v1/holds.
func (s *Server) holds(w http.ResponseWriter, r *http.Request) {
	q, err := documents.QueryOf(r.URL.Query())
	if err != nil {
		documents.Refuse(w, http.StatusBadRequest, "Bad query", err.Error())
		return
	}
	documents.Answer(w, documents.Holds{Holds: s.holdsOf(s.options.Inventory.View(), q), Ended: s.options.Record.Ended(q)})
}

// holdsOf lists the holds that are wanted.
func (s *Server) holdsOf(v *inventory.View, q record.Query) []documents.Hold {
	out := []documents.Hold{}
	for _, h := range v.Holds.All() {
		hold := documents.HoldOf(v, &h)
		if q.Wants(hold.Asker, hold.Queue) {
			hold.Taint = s.options.Taint(hold.Node)
			out = append(out, hold)
		}
	}
	return out
}
