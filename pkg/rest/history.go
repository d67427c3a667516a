package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// appHistory answers GET history/apps.
func (s *Server) appHistory(w http.ResponseWriter, _ *http.Request) {
	documents.Answer(w, s.history.AppSamples())
}

// containerHistory answers GET history/containers.
func (s *Server) containerHistory(w http.ResponseWriter, _ *http.Request) {
	documents.Answer(w, s.history.ContainerSamples())
}
