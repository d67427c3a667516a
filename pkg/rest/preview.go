package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// Previewer says what would become of a pod, and does nothing.
type Previewer interface {
	// Preview takes a manifest, YAML or JSON. The error is a ManifestError where that
	// is no pod that could be looked at.
	Preview(ctx context.Context, manifest []byte) (*documents.Preview, error)
}

// preview answers POST /api/v1/preview.
func (s *Server) preview(w http.ResponseWriter, r *http.Request) {
	previewer := s.options.Previewer()
	if previewer == nil {
		documents.Refuse(w, http.StatusServiceUnavailable, "No preview", "this scheduler makes no previews, or not yet: look for \"preview\" in its log")
		return
	}
	manifest, ok := s.body(w, r, "Manifest", "manifest", documents.PreviewBytes)
	if !ok {
		return
	}
	var answered *documents.Preview
	var err error
	if !s.inFlight.inTurn(r.Context(), s.previews, func() { answered, err = lookAhead(r.Context(), previewer, manifest) }) {
		documents.Busy(w, "Too many requests", "other previews are being made; try again in a moment")
		return
	}
	switch bad, ok := errors.AsType[*documents.ManifestError](err); {
	case ok:
		documents.Refuse(w, http.StatusBadRequest, "No such pod can be looked at", bad.Text)
	case errors.Is(err, context.DeadlineExceeded):
		documents.Refuse(w, http.StatusServiceUnavailable, "No preview",
			fmt.Sprintf("looking at this pod took longer than %v and was given up: give it fewer terms of affinity, or try again when the scheduler has less to do", documents.PreviewTime))
	case err != nil:
		documents.Refuse(w, http.StatusInternalServerError, "No preview", err.Error())
	default:
		documents.Answer(w, answered)
	}
}

// lookAhead makes a preview. The filters are not ours and may panic on an unusual pod. Then
// that pod has no preview.
func lookAhead(ctx context.Context, p Previewer, manifest []byte) (answered *documents.Preview, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			answered, err = nil, fmt.Errorf("a filter of the profile panicked on this pod: %v; please report it with the manifest", broken)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, documents.PreviewTime)
	defer cancel()
	return p.Preview(ctx, manifest)
}
