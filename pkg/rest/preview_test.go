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
		if !slices.Equal(got, []time.Duration{-1, 8 * time.Second, 16 * time.Second}) {
			t.Errorf("answered after %v", got)
		}
	})
}

// A preview that takes too long is given up, and the next one is made.
func TestPreviewsHaveATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := previewServer(echo{took: documents.PreviewTime - time.Second})
		s.options.Clock = clock.RealClock{}
		if w := post(t.Context(), s.Handler(), "x"); w.Code != http.StatusOK {
			t.Errorf("within its time: %d %s", w.Code, w.Body)
		}
		s.options.Previewer = func() Previewer { return echo{took: time.Hour} }
		began := time.Now()
		w := post(t.Context(), s.Handler(), "x")
		if took := time.Since(began); w.Code != http.StatusServiceUnavailable || took != documents.PreviewTime || !strings.Contains(w.Body.String(), "longer than 20s") {
			t.Errorf("%d after %v: %s", w.Code, took, w.Body)
		}
		time.Sleep(time.Minute)
		s.options.Previewer = func() Previewer { return echo{} }
		if w := post(t.Context(), s.Handler(), "x"); w.Code != http.StatusOK {
			t.Errorf("the next one: %d %s", w.Code, w.Body)
		}
	})
}

// left says that a preview has begun, and ends it only when its reader leaves.
type left chan struct{}

func (l left) Preview(ctx context.Context, _ []byte) (*documents.Preview, error) {
	close(l)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCancelledPreviewReleasesItsTurn(t *testing.T) {
	begun := make(left)
	s := previewServer(begun)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-begun; cancel() }()
	if w := post(ctx, s.Handler(), "x"); w.Code != http.StatusInternalServerError {
		t.Fatalf("%d", w.Code)
	}
	s.options.Previewer = func() Previewer { return echo{} }
	if w := post(t.Context(), s.Handler(), "x"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// broken panics, as a filter may on an unusual pod.
type broken struct{}

func (broken) Preview(context.Context, []byte) (*documents.Preview, error) { panic("no zone") }

func TestAPanicLocksNoPreviewOut(t *testing.T) {
	s := previewServer(broken{})
	handler := s.Handler()
	if w := post(t.Context(), handler, "a pod"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "no zone") {
		t.Errorf("a panic: %d %s; want 500 that says what happened", w.Code, w.Body)
	}
	s.options.Previewer = func() Previewer { return echo{} }
	if w := post(t.Context(), handler, "a pod"); w.Code != http.StatusOK {
		t.Errorf("the next preview: %d %s", w.Code, w.Body)
	}
}
