package rest

import (
	"errors"
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// Errors of a [Guard] for a request that it refuses.
var (
	// ErrUnknown: the sender is unknown.
	ErrUnknown = errors.New("unknown sender: send a valid bearer token")
	// ErrForbidden: the sender lacks a permission. It is wrapped with what is missing.
	ErrForbidden = errors.New("forbidden")
)

// Guard decides which users may read.
type Guard interface {
	// Admit returns nil for a request that may be answered, an error that is
	// ErrUnknown or ErrForbidden, or another one if that could not be found out.
	// It may remove the token from the request. Requests with known are those of
	// known readers: however many others ask, it answers them as if they were alone.
	Admit(r *http.Request, known bool) error
}

// admit has the guard look at a copy of the request, because a stream asks again and needs
// the token.
func admit(guard Guard, r *http.Request) error {
	return guard.Admit(r.Clone(r.Context()), isKnown(r.Context()))
}

// revoked says why a user that was admitted before may not read any more. It is nil if the user
// still may, and if that cannot be found out: an outage ends nothing that was allowed.
func revoked(guard Guard, r *http.Request) *documents.Problem {
	if guard == nil {
		return nil
	}
	switch err := admit(guard, r); {
	case errors.Is(err, ErrUnknown):
		return &documents.Problem{StatusCode: http.StatusUnauthorized, Message: "Unauthorized", Description: err.Error()}
	case errors.Is(err, ErrForbidden):
		return &documents.Problem{StatusCode: http.StatusForbidden, Message: "Forbidden", Description: err.Error()}
	}
	return nil
}

// guarded answers only requests that the guard admits. Browsers ask with OPTIONS what
// they may send before they send a token.
func guarded(handler http.Handler, guard Guard) http.Handler {
	if guard == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			handler.ServeHTTP(w, r)
			return
		}
		err := admit(guard, r)
		switch {
		case err == nil:
			setKnown(r.Context(), true)
			handler.ServeHTTP(w, r)
		case errors.Is(err, ErrUnknown):
			setKnown(r.Context(), false)
			w.Header().Set("WWW-Authenticate", "Bearer")
			documents.Refuse(w, http.StatusUnauthorized, "Unauthorized", err.Error())
		case errors.Is(err, ErrForbidden):
			documents.Refuse(w, http.StatusForbidden, "Forbidden", err.Error())
		default:
			documents.Refuse(w, http.StatusServiceUnavailable, "Authorization unavailable", err.Error())
		}
	})
}
