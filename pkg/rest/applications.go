package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// applicationList answers with some of the applications that have pods.
func (s *Server) applicationList(w http.ResponseWriter, v *inventory.View, apps []*inventory.Application, states []string) {
	now := s.options.Clock.Now()
	documents.Write(w, func(p *documents.JSONWriter) { p.Applications(s.options.Inventory, v, apps, states, now) })
}

// applications answers GET partition/{partition}/applications/{state}.
func (s *Server) applications(w http.ResponseWriter, r *http.Request) {
	switch state := strings.ToLower(r.PathValue("state")); state {
	case "active":
		if states, ok := documents.ActiveStatesOf(w, r); ok {
			v := s.options.Inventory.View()
			s.applicationList(w, v, v.Applications, states)
		}
	case "completed":
		s.completed(w)
	case "rejected":
		s.rejected(w)
	default:
		documents.Refuse(w, http.StatusBadRequest, "Only following application states are allowed: active, rejected, completed",
			"there is no list of applications called "+state)
	}
}

func (s *Server) completed(w http.ResponseWriter) {
	documents.Write(w, func(p *documents.JSONWriter) {
		p.Open('[')
		for _, a := range s.options.Inventory.View().Finished {
			p.Ended(a)
		}
		p.Close(']')
	})
}

// queueApplications answers GET partition/{partition}/queue/{queue}/applications
// and .../applications/active.
func (s *Server) queueApplications(w http.ResponseWriter, r *http.Request) {
	if state := r.PathValue("state"); state != "" && !strings.EqualFold(state, "active") {
		documents.Refuse(w, http.StatusBadRequest, "Only following application states are allowed: active",
			"there is no list of a queue's applications called "+state)
		return
	}
	states, ok := documents.ActiveStatesOf(w, r)
	if !ok {
		return
	}
	v := s.options.Inventory.View()
	if q, ok := findQueue(w, r, v); ok {
		s.applicationList(w, v, v.InQueue(q.Path), states)
	}
}

// application answers GET partition/{partition}/application/{application} and
// partition/{partition}/queue/{queue}/application/{application}. An ID is unique only
// within a namespace. Without a namespace it shows the application with pods that was
// submitted first, otherwise the completed one that ended last.
func (s *Server) application(w http.ResponseWriter, r *http.Request) {
	v := s.options.Inventory.View()
	queue := ""
	if r.PathValue("queue") != "" {
		q, ok := findQueue(w, r, v)
		if !ok {
			return
		}
		queue = q.Path
	}
	id, namespace := r.PathValue("application"), r.URL.Query().Get("namespace")
	wanted := func(a *output.AppRecord) bool {
		return a.ID == id && (namespace == "" || a.Namespace == namespace) && (queue == "" || a.Queue == queue)
	}
	for _, a := range v.Applications {
		if wanted(a.AppRecord) {
			documents.Write(w, func(p *documents.JSONWriter) { p.Application(s.options.Inventory, v, a, s.options.Clock.Now()) })
			return
		}
	}
	for _, a := range slices.Backward(v.Finished) {
		if wanted(a) {
			documents.Write(w, func(p *documents.JSONWriter) { p.Ended(a) })
			return
		}
	}
	documents.Refuse(w, http.StatusNotFound, "Application not found", "there is no application "+id)
}

// rejected answers with the applications that have no queue, by their oldest pods. Before the
// start none was refused.
func (s *Server) rejected(w http.ResponseWriter) {
	var firsts []*inventory.Pod
	if v := s.options.Inventory.View(); v.Started {
		for _, pods := range v.UnplacedApplications(func(p *inventory.Pod) bool { return !p.Gated }) {
			firsts = append(firsts, pods[0])
		}
	}
	documents.Write(w, func(p *documents.JSONWriter) {
		p.Open('[')
		for i, why := range s.options.Inventory.Whys(firsts) {
			if !why.None() {
				p.Refused(firsts[i], why)
			}
		}
		p.Close(']')
	})
}
