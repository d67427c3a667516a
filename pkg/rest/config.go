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
	if !documents.HasConfig(v) {
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

// body reads a request body of at most so many bytes, which does not count as making an
// answer. If it returns false, it has already written the error.
func (s *Server) body(w http.ResponseWriter, r *http.Request, title, thing string, most int64) ([]byte, bool) {
	var text []byte
	var err error
	s.inFlight.away(func() { text, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most)) })
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		documents.Refuse(w, http.StatusRequestEntityTooLarge, title+" too large", fmt.Sprintf("a %s has at most %d bytes", thing, most))
	case err != nil:
		documents.Refuse(w, http.StatusBadRequest, title+" not read", err.Error())
	}
	return text, err == nil
}

// validate answers POST validate-conf. Nothing is changed.
func (s *Server) validate(w http.ResponseWriter, r *http.Request) {
	const others = "other documents are being looked at; try again in a moment"
	defer s.drafts.Add(-1)
	if s.drafts.Add(1) > s.limits.drafts {
		// Before its first byte is read: slow senders would otherwise keep all documents
		// in memory.
		documents.Busy(w, "Too many requests", others)
		return
	}
	document, ok := s.body(w, r, "Document", "configuration", s.limits.bodyBytes)
	if !ok {
		return
	}
	var spec *config.Spec
	var err error
	if !s.inFlight.inTurn(r.Context(), s.validations, func() { spec, err = config.Parse(document) }) {
		documents.Busy(w, "Too many requests", others)
		return
	}
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
