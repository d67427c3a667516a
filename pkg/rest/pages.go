package rest

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// viewed answers with what a function writes of what there is now.
func (s *Server) viewed(write func(p *documents.JSONWriter, v *inventory.View)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		documents.Write(w, func(p *documents.JSONWriter) { write(p, s.options.Inventory.View()) })
	}
}

// clusters writes what GET clusters answers; partitions and nodes write the same of their pages.
func (s *Server) clusters(p *documents.JSONWriter, v *inventory.View) {
	p.Clusters(v, s.options.Build, s.started)
}

func (s *Server) partitions(p *documents.JSONWriter, v *inventory.View) { p.Partitions(v, s.started) }

func (s *Server) nodes(p *documents.JSONWriter, v *inventory.View) { p.Nodes(v, s.options.NodeLabels) }

// node answers GET partition/{partition}/node/{node}.
func (s *Server) node(w http.ResponseWriter, r *http.Request) {
	v, name := s.options.Inventory.View(), r.PathValue("node")
	n := v.Node(name)
	if n == nil {
		documents.Refuse(w, http.StatusNotFound, "Node not found", "there is no node "+name)
		return
	}
	documents.Write(w, func(p *documents.JSONWriter) { p.Node(v, n, s.options.NodeLabels(n.Name)) })
}

// user answers GET partition/{partition}/usage/user/{user}.
func (s *Server) user(w http.ResponseWriter, r *http.Request) {
	name := func(u documents.UserUsage) string { return u.UserName }
	usage(w, r, "user", documents.UsersOf(s.options.Inventory.View()), name, "User not found", "no application of user %s runs")
}

// group answers GET partition/{partition}/usage/group/{group}.
func (s *Server) group(w http.ResponseWriter, r *http.Request) {
	name := func(g documents.GroupUsage) string { return g.GroupName }
	usage(w, r, "group", documents.GroupsOf(s.options.Inventory.View()), name, "Group not found", "no application runs that limits of group %s hold for")
}

// usage answers with the one of all that has the name in a part of the path, or else that
// there is none.
func usage[T any](w http.ResponseWriter, r *http.Request, part string, all []T, name func(T) string, title, none string) {
	i, ok := named(r, part, func(given string) (int, bool) {
		i := slices.IndexFunc(all, func(one T) bool { return name(one) == given })
		return i, i >= 0
	})
	if !ok {
		documents.Refuse(w, http.StatusNotFound, title, fmt.Sprintf(none, r.PathValue(part)))
		return
	}
	documents.Answer(w, all[i])
}

// metrics answers GET metrics: YuniKorn's names, in the text format of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	documents.SetHeader(w)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if err := metrics.WriteYuniKorn(w, s.options.Inventory.View()); err != nil {
		klog.Background().Error(err, "Metrics cannot be shown")
		documents.Refuse(w, http.StatusInternalServerError, "Metrics not known", err.Error())
	}
}

// decisions answers GET /api/v1/decisions.
func (s *Server) decisions(w http.ResponseWriter, r *http.Request) {
	q, err := documents.QueryOf(r.URL.Query(), "victim")
	if err != nil {
		documents.Refuse(w, http.StatusBadRequest, "Bad query", err.Error())
		return
	}
	documents.Write(w, func(p *documents.JSONWriter) {
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
	})
}
