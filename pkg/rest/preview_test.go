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
		w := ask(tt.server.Handler(), http.MethodPost, "/api/v1/preview", tt.body)
		expect.Same(t, tt.name, tt.status, w.Code)
		expect.That(t, strings.Contains(w.Body.String(), tt.told), "%s: %s, want %q", tt.name, w.Body, tt.told)
		expect.That(t, json.Valid(w.Body.Bytes()), "%s: no JSON: %s", tt.name, w.Body)
	}
}

// One preview is made at a time; a request that waits for its turn holds up no other
// page, and gives up after ten seconds.
func TestPreviewsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := previewServer(echo{took: 8 * time.Second}).Handler()
		began := time.Now()
		ends := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				made := ask(handler, http.MethodPost, "/api/v1/preview", "x").Code == http.StatusOK
				ends <- map[bool]time.Duration{true: time.Since(began), false: -1}[made]
			}()
		}
		time.Sleep(2 * time.Second)
		w := ask(handler, http.MethodGet, "/ws/v1/nothing", "")
		expect.That(t, w.Code == http.StatusNotFound && time.Since(began) == 2*time.Second,
			"another reader was answered with %d after %v", w.Code, time.Since(began))
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
		synctest.Test(t, func(t *testing.T) {
			s := previewServer(c.previewer)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.leaves > 0 {
				time.AfterFunc(c.leaves, cancel)
			}
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/preview", strings.NewReader("x"))
			began := time.Now()
			w := answer(s.Handler(), r)
			expect.Same(t, name+": it took", c.took, time.Since(began))
			expect.Same(t, name, c.status, w.Code)
			expect.That(t, strings.Contains(w.Body.String(), c.told), "%s: %s", name, w.Body)
			time.Sleep(time.Minute)
			s.options.Previewer = func() Previewer { return echo{} }
			next := ask(s.Handler(), http.MethodPost, "/api/v1/preview", "x")
			expect.Same(t, name+": the next one", http.StatusOK, next.Code)
		})
	}
}
