package rest

import (
	"net/http"
)

// RoleHeader is on each answer of a replica that stands by, with the value RoleStandby.
// It has the same books as the one that leads, and makes no attempts and no decisions:
// what they came to is not known to it.
const (
	RoleHeader  = "Paddock-Role"
	RoleStandby = "standby"
)

// standsBy tells whether another replica leads.
func (s *Server) standsBy() bool { return !s.options.Leading() }

// marked marks the answers of a replica that stands by.
func (s *Server) marked(handler http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.standsBy() {
			w.Header().Set(RoleHeader, RoleStandby)
		}
		handler.ServeHTTP(w, r)
	}
}
