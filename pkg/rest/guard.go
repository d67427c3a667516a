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

// asking is a request for a guard to look at, who may take the token out of it: a
// stream asks again.
func asking(r *http.Request) *http.Request { return r.Clone(r.Context()) }

// turnedAway says why who was admitted is no more; nil for who still is, or where that
// cannot be found out: an outage ends nothing that was allowed.
func turnedAway(guard Guard, r *http.Request) *Problem {
	if guard == nil {
		return nil
	}
	switch err := guard.Admit(asking(r)); {
	case errors.Is(err, ErrUnknown):
		return &Problem{http.StatusUnauthorized, "Unauthorized", err.Error()}
	case errors.Is(err, ErrForbidden):
		return &Problem{http.StatusForbidden, "Forbidden", err.Error()}
	}
	return nil
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
		err := guard.Admit(asking(r))
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
