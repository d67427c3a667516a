package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestHealthcheckTellsWhatIsWrong(t *testing.T) {
	server := NewServer(Options{Checks: []Check{
		{Name: "Books", Description: "sums", Run: func() error { return nil }},
		{Name: "Pods", Description: "listing", Run: func() error { return errors.New("pod a/b: in the listing and not in the store") }}}})
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
	var took time.Duration
	now := clocktesting.NewFakeClock(time.Unix(1000, 0))
	h := health{clock: now, checks: []Check{{Name: "Books", Run: func() error { runs++; now.Step(took); return broken }}}}
	if !h.result().Healthy {
		t.Error("a check that finds nothing makes it unhealthy")
	}
	broken = errors.New("wrong")
	now.Step(checkInterval - 1)
	if got := h.result(); !got.Healthy || runs != 1 {
		t.Errorf("healthy %v after %d runs; want the old result after 1", got.Healthy, runs)
	}
	now.Step(1)
	took = checkInterval
	if got := h.result(); got.Healthy || runs != 2 {
		t.Errorf("healthy %v after %d runs; want the new result after 2", got.Healthy, runs)
	}
	broken = nil
	now.Step((checkRest-1)*checkInterval - 1)
	if got := h.result(); got.Healthy || runs != 2 {
		t.Errorf("healthy %v after %d runs; a check that takes long rests long", got.Healthy, runs)
	}
	now.Step(1)
	if got := h.result(); !got.Healthy || runs != 3 {
		t.Errorf("healthy %v after %d runs; want the new result after 3", got.Healthy, runs)
	}
}
