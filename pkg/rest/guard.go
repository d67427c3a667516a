package rest

import (
	"errors"
	"net/http"
)

// What a [Guard] says of a request that is not to be answered.
var (
	// ErrUnknown: nobody knows who sends it.
	ErrUnknown = errors.New("it is not known who sends the request: send a valid bearer token")
	// ErrForbidden: who sends it may not. It is wrapped with what is missing.
	ErrForbidden = errors.New("forbidden")
)

// Guard says who may read.
type Guard interface {
	// Admit returns nil for a request that may be answered, an error that is
	// ErrUnknown or ErrForbidden, or another one if that could not be found out.
	Admit(r *http.Request) error
}

// guarded answers only whom the guard admits. Browsers ask with OPTIONS what they may
// send before they send a token.
func guarded(handler http.Handler, guard Guard) http.Handler {
	if guard == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			handler.ServeHTTP(w, r)
			return
		}
		err := guard.Admit(r)
		switch {
		case err == nil:
			handler.ServeHTTP(w, r)
		case errors.Is(err, ErrUnknown):
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem(w, http.StatusUnauthorized, "Unauthorized", err.Error())
		case errors.Is(err, ErrForbidden):
			problem(w, http.StatusForbidden, "Forbidden", err.Error())
		default:
			problem(w, http.StatusServiceUnavailable, "Not known who may read", err.Error())
		}
	})
}
