package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHealthcheckTellsWhatIsWrong(t *testing.T) {
	server := NewServer(nil,
		Check{Name: "Books", Description: "sums", Run: func() error { return nil }},
		Check{Name: "Pods", Description: "listing", Run: func() error { return errors.New("pod a/b: in the listing and not in the store") }})
	recorder := httptest.NewRecorder()
	server.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/ws/v1/scheduler/healthcheck", nil))
	var got Health
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
		t.Fatalf("status %d: %v", recorder.Code, err)
	}
	want := Health{HealthChecks: []HealthCheck{
		{Name: "Books", Description: "sums", Succeeded: true},
		{Name: "Pods", Description: "listing", DiagnosisMessage: "pod a/b: in the listing and not in the store"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHealthcheckRunsAtMostOnceInAnInterval(t *testing.T) {
	runs := 0
	var broken error
	h := health{checks: []Check{{Name: "Books", Run: func() error { runs++; return broken }}}}
	start := time.Unix(1000, 0)
	if !h.result(start).Healthy {
		t.Error("a check that finds nothing makes it unhealthy")
	}
	broken = errors.New("wrong")
	if got := h.result(start.Add(checkInterval - 1)); !got.Healthy || runs != 1 {
		t.Errorf("healthy %v after %d runs; want the old result after 1", got.Healthy, runs)
	}
	if got := h.result(start.Add(checkInterval)); got.Healthy || runs != 2 {
		t.Errorf("healthy %v after %d runs; want the new result after 2", got.Healthy, runs)
	}
}
