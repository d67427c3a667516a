package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// config answers GET config: YAML, or JSON for clients that accept it.
func (s *Server) config(w http.ResponseWriter, r *http.Request) {
	v := s.options.Inventory.View()
	if !documents.Read(v) {
		documents.Refuse(w, http.StatusServiceUnavailable, "No configuration yet",
			"the scheduler has not read a valid configuration since it was started; its log, and an event on the ConfigMap, say why")
		return
	}
	asYAML, asJSON, err := s.documents.Of(v.Spec)
	if err != nil {
		documents.Refuse(w, http.StatusInternalServerError, "Configuration cannot be shown", err.Error())
		return
	}
	w.Header().Add("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		documents.Answer(w, json.RawMessage(asJSON))
		return
	}
	documents.SetHeader(w)
	w.Header().Set("Content-Type", "application/x-yaml; charset=UTF-8")
	_, _ = w.Write(asYAML)
}

// validate answers POST validate-conf. Nothing is changed.
func (s *Server) validate(w http.ResponseWriter, r *http.Request) {
	defer s.drafts.Add(-1)
	if s.drafts.Add(1) > s.limits.drafts {
		// Before its first byte is read: slow senders would otherwise keep all documents
		// in memory.
		documents.TooManyDrafts(w)
		return
	}
	document, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.bodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		documents.Refuse(w, http.StatusRequestEntityTooLarge, "Document too large",
			fmt.Sprintf("a configuration has at most %d bytes", s.limits.bodyBytes))
		return
	case err != nil:
		documents.Refuse(w, http.StatusBadRequest, "Document not read", err.Error())
		return
	}
	if !takeTurn(r.Context(), s.validations) {
		documents.TooManyDrafts(w)
		return
	}
	var spec *config.Spec
	away(r.Context(), func() {
		defer s.validations.Release(1)
		spec, err = config.Parse(document)
	})
	if err != nil {
		documents.Answer(w, documents.Validation{Reason: err.Error()})
		return
	}
	out := documents.Validation{Allowed: true}
	for _, warning := range spec.Warnings {
		out.Warnings = append(out.Warnings, warning.String())
	}
	documents.Answer(w, out)
}
