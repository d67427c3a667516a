package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// echo answers with the manifest as the name of the pod.
type echo struct {
	err  error
	took time.Duration
}

func (e echo) Preview(ctx context.Context, manifest []byte) (*documents.Preview, error) {
	if e.took > 0 {
		select {
		case <-time.After(e.took):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &documents.Preview{Ref: objects.Ref{Name: string(manifest)}, Outcome: documents.PreviewFits}, e.err
}

func previewServer(p Previewer) *Server {
	return newServer(Options{Previewer: func() Previewer { return p }})
}

func post(ctx context.Context, handler http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/preview", strings.NewReader(body)))
	return w
}

func TestPreviewAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server *Server
		body   string
		status int
		told   string
	}{
		{"fine", previewServer(echo{}), "a pod", 200, `"name":"a pod"`},
		{"as large as may be", previewServer(echo{}), strings.Repeat("x", documents.PreviewBytes), 200, `"outcome":"fits"`},
		{"too large", previewServer(echo{}), strings.Repeat("x", documents.PreviewBytes+1), 413, "at most 262144 bytes"},
		{"no pod", previewServer(echo{err: &documents.ManifestError{Text: "kind: is missing"}}), "", 400, "kind: is missing"},
		{"trouble", previewServer(echo{err: errors.New("no nodes")}), "", 500, "no nodes"},
		{"no previewer yet", previewServer(nil), "", 503, "makes no previews"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := post(t.Context(), tt.server.Handler(), tt.body)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.told) || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d %s; want %d with %q", w.Code, w.Body, tt.status, tt.told)
			}
		})
	}
	w := httptest.NewRecorder()
	previewServer(echo{}).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/preview", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("GET: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

// One preview is made at a time; a request that waits for its turn holds up no other
// page, and gives up after ten seconds.
func TestPreviewsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := previewServer(echo{took: 8 * time.Second})
		s.options.Clock = clock.RealClock{}
		handler := s.Handler()
		began := time.Now()
		ends := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				if w := post(t.Context(), handler, "x"); w.Code == http.StatusOK {
					ends <- time.Since(began)
				} else {
					ends <- -1
				}
			}()
		}
		time.Sleep(2 * time.Second)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ws/v1/nothing", nil))
		if w.Code != http.StatusNotFound || time.Since(began) != 2*time.Second {
			t.Errorf("another reader was answered with %d after %v", w.Code, time.Since(began))
		}
		got := []time.Duration{<-ends, <-ends, <-ends}
		slices.Sort(got)
		expect.Same(t, "answered after", []time.Duration{-1, 8 * time.Second, 16 * time.Second}, got)
	})
}

// broken panics, as a filter may on an unusual pod.
type broken struct{}

func (broken) Preview(context.Context, []byte) (*documents.Preview, error) { panic("no zone") }

// TestThePreviewAfterOneThatEnded: a preview that takes too long is given up, and however a
// preview ends, the next one is made.
func TestThePreviewAfterOneThatEnded(t *testing.T) {
	for name, c := range map[string]struct {
		previewer Previewer
		leaves    time.Duration // when its reader leaves; 0 for never
		took      time.Duration
		status    int
		told      string
	}{
		"in its time":       {echo{took: documents.PreviewTime - time.Second}, 0, documents.PreviewTime - time.Second, http.StatusOK, ""},
		"too long":          {echo{took: time.Hour}, 0, documents.PreviewTime, http.StatusServiceUnavailable, "longer than 20s"},
		"its reader leaves": {echo{took: time.Hour}, time.Second, time.Second, http.StatusInternalServerError, ""},
		"a filter panics":   {broken{}, 0, 0, http.StatusInternalServerError, "no zone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := previewServer(c.previewer)
				s.options.Clock = clock.RealClock{}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.leaves > 0 {
					time.AfterFunc(c.leaves, cancel)
				}
				began := time.Now()
				w := post(ctx, s.Handler(), "x")
				if took := time.Since(began); w.Code != c.status || took != c.took || !strings.Contains(w.Body.String(), c.told) {
					t.Errorf("%d after %v: %s", w.Code, took, w.Body)
				}
				time.Sleep(time.Minute)
				s.options.Previewer = func() Previewer { return echo{} }
				if w := post(t.Context(), s.Handler(), "x"); w.Code != http.StatusOK {
					t.Errorf("the next one: %d %s", w.Code, w.Body)
				}
			})
		})
	}
}
