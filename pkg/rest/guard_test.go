package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// doorman admits requests with the right word.
var doorman = guardFunc(func(r *http.Request, _ bool) error {
	switch r.Header.Get("Authorization") {
	case "":
		return ErrUnknown
	case "friend":
		return nil
	case "stranger":
		return fmt.Errorf("%w: no", ErrForbidden)
	}
	return errors.New("no answer")
})

func TestGuard(t *testing.T) {
	c := newCluster(t, "")
	c.server.options.Guard = doorman
	c.http = c.server.Handler()
	for word, want := range map[string]int{"": 401, "friend": 200, "stranger": 403, "?": 503} {
		for _, path := range []string{queuesPath, "/api/v1/holds", streamPath, batchPath, "/debug/fullstatedump", "/ws/v1/validate-conf", "/nowhere"} {
			r := httptest.NewRequest(http.MethodHead, path, nil)
			r.Header.Set("Authorization", word)
			w := c.ask(r)
			if want == http.StatusOK && path == "/nowhere" {
				continue
			}
			if want == http.StatusOK && path == "/ws/v1/validate-conf" {
				continue // it takes no HEAD
			}
			expect.Same(t, word+", "+path, want, w.Code)
			var p documents.Problem
			if want != http.StatusOK && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.StatusCode != want || p.Description == "") {
				t.Errorf("%q, %s: %s", word, path, w.Body)
			}
			if got := w.Header().Get("WWW-Authenticate"); (got == "Bearer") != (want == http.StatusUnauthorized) {
				t.Errorf("%q, %s: WWW-Authenticate %q", word, path, got)
			}
		}
	}
	if w, _ := c.do(t, http.MethodOptions, queuesPath); w.Code != http.StatusNoContent {
		t.Errorf("OPTIONS without a token: %d", w.Code)
	}
}

func TestConfigBeforeTheFirstIsRead(t *testing.T) {
	c := newUnstarted(t)
	r, body := c.do(t, http.MethodGet, "/ws/v1/config")
	if r.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", r.Code, body)
	}
	_, body = c.do(t, http.MethodGet, "/ws/v1/fullstatedump")
	var dump map[string]any
	if err := json.Unmarshal(body, &dump); err != nil || dump["config"] != nil {
		t.Errorf("%v, config %v", err, dump["config"])
	}
	c.configure(t, "partitions: [{name: default, queues: [{name: root}]}]")
	if r, body = c.do(t, http.MethodGet, "/ws/v1/config"); r.Code != http.StatusOK {
		t.Errorf("once there is one: %d %s", r.Code, body)
	}
}
