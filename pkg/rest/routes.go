package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// routes are the pages of YuniKorn's interface below /ws/v1, all of which are
// read with GET.
func (s *Server) routes() map[string]http.HandlerFunc {
	routes := map[string]http.HandlerFunc{
		"clusters":                    s.viewed(s.clusters),
		"config":                      s.config,
		"history/apps":                s.viewed(func(p *documents.JSONWriter, _ *inventory.View) { p.Value(s.history.AppSamples()) }),
		"metrics":                     s.metrics,
		"history/containers":          s.viewed(func(p *documents.JSONWriter, _ *inventory.View) { p.Value(s.history.ContainerSamples()) }),
		"partitions":                  s.viewed(s.partitions),
		"scheduler/healthcheck":       s.healthcheck,
		"scheduler/node-utilizations": s.viewed((*documents.JSONWriter).Utilizations),
		"events/batch":                s.eventBatch,
		"fullstatedump":               s.fullStateDump,
	}
	for page, handler := range map[string]http.HandlerFunc{
		"placementrules":                          s.viewed((*documents.JSONWriter).Rules),
		"queues":                                  s.viewed(queueTree),
		"queue/{queue}":                           s.queue,
		"queue/{queue}/applications":              s.queueApplications,
		"queue/{queue}/applications/{state}":      s.queueApplications,
		"queue/{queue}/application/{application}": s.application,
		"application/{application}":               s.application,
		"applications/{state}":                    s.applications,
		"nodes":                                   s.viewed(s.nodes),
		"node/{node}":                             s.node,
		"usage/users":                             s.viewed(func(p *documents.JSONWriter, v *inventory.View) { p.Value(documents.UsersOf(v)) }),
		"usage/user/{user}":                       s.user,
		"usage/groups":                            s.viewed(func(p *documents.JSONWriter, v *inventory.View) { p.Value(documents.GroupsOf(v)) }),
		"usage/group/{group}":                     s.group,
	} {
		routes["partition/{partition}/"+page] = ofPartition(handler)
	}
	return routes
}

// streamPath is where the stream of events is.
const streamPath = "/ws/v1/events/stream"

// endpoint is what is answered for one method.
type endpoint struct {
	method, path string
	handler      http.HandlerFunc
}

// endpoints are all of them but the stream and the pages for people. YuniKorn does not have
// those below /api/v1.
func (s *Server) endpoints() []endpoint {
	out := []endpoint{
		{http.MethodGet, "/debug/fullstatedump", s.fullStateDump},
		{http.MethodPost, "/ws/v1/validate-conf", s.validate},
		{http.MethodPost, "/api/v1/preview", s.preview},
		{http.MethodGet, "/api/v1/decisions", s.decisions},
		{http.MethodGet, "/api/v1/holds", s.holds},
		{http.MethodGet, "/api/v1/pods/{namespace}/{name}/explain", s.explain},
	}
	for page, handler := range s.routes() {
		out = append(out, endpoint{http.MethodGet, "/ws/v1/" + page, handler})
	}
	return out
}
