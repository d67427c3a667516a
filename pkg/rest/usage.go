package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// users answers GET partition/{partition}/usage/users.
func (s *Server) users(w http.ResponseWriter, _ *http.Request) {
	documents.Answer(w, documents.UsersOf(s.options.Inventory.View()))
}

// groups answers GET partition/{partition}/usage/groups.
func (s *Server) groups(w http.ResponseWriter, _ *http.Request) {
	documents.Answer(w, documents.GroupsOf(s.options.Inventory.View()))
}

// user answers GET partition/{partition}/usage/user/{user}.
func (s *Server) user(w http.ResponseWriter, r *http.Request) {
	all := documents.UsersOf(s.options.Inventory.View())
	if i, ok := named(r, "user", documents.IndexIn(all, func(u *documents.UserUsage) string { return u.UserName })); ok {
		documents.Answer(w, all[i])
		return
	}
	documents.Refuse(w, http.StatusNotFound, "User not found", "no application of user "+r.PathValue("user")+" runs")
}

// group answers GET partition/{partition}/usage/group/{group}.
func (s *Server) group(w http.ResponseWriter, r *http.Request) {
	all := documents.GroupsOf(s.options.Inventory.View())
	if i, ok := named(r, "group", documents.IndexIn(all, func(g *documents.GroupUsage) string { return g.GroupName })); ok {
		documents.Answer(w, all[i])
		return
	}
	documents.Refuse(w, http.StatusNotFound, "Group not found", "no application runs that limits of group "+r.PathValue("group")+" hold for")
}
