package rest

import (
	"net/http"
)

// RoleHeader is on each answer of a standby, with the value RoleStandby. A standby has the
// same books as the leader, but makes no attempts and no decisions and does not know their
// results.
const (
	RoleHeader  = "Paddock-Role"
	RoleStandby = "standby"
)

// standsBy tells whether another replica leads.
func (s *Server) standsBy() bool { return !s.options.Leading() }

// marked marks the answers of a standby.
func (s *Server) marked(handler http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.standsBy() {
			w.Header().Set(RoleHeader, RoleStandby)
		}
		handler.ServeHTTP(w, r)
	}
}
