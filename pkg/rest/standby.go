package rest

import (
	"fmt"
	"net/http"
)

// RoleHeader is on each answer of a replica that stands by, with the value RoleStandby.
// It has the same books as the one that leads, and makes no attempts and no decisions:
// what they came to is not known to it.
const (
	RoleHeader  = "Paddock-Role"
	RoleStandby = "standby"
)

// askLeader is what to do where only the replica that leads knows.
const askLeader = "The replica that answered stands by: what was tried for the pod, and what that came to, only the one that leads knows. " +
	"Ask that one (the lease that they share names it), or look at kubectl describe pod."

// standsBy tells whether another replica leads.
func (s *Server) standsBy() bool { return s.leading != nil && !s.leading() }

// marked marks the answers of a replica that stands by.
func (s *Server) marked(handler http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.standsBy() {
			w.Header().Set(RoleHeader, RoleStandby)
		}
		handler.ServeHTTP(w, r)
	}
}

// standBy makes it the answer of a replica that stands by: of a pod that waits for more
// than what the books say, it is said that others know more.
func (x *Explanation) standBy() {
	x.Standby = true
	switch x.State {
	case podTried:
		x.Summary = fmt.Sprintf("Pod %s/%s was let through; what came of it the replica that leads knows, and this one stands by.", x.Namespace, x.Name)
	case podWaiting, podStuck, podBacksOff, podHolds:
	default:
		return
	}
	x.ToDo = append(x.ToDo, askLeader)
}
