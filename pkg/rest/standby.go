package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// standsBy tells whether another replica leads.
func (s *Server) standsBy() bool { return !s.options.Leading() }

// marked marks the answers of a standby.
func (s *Server) marked(handler http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.standsBy() {
			w.Header().Set(documents.RoleHeader, documents.RoleStandby)
		}
		handler.ServeHTTP(w, r)
	}
}
