package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

const healthPage = "/ws/v1/scheduler/healthcheck"

// readHealth is what a reader of the health is told.
func readHealth(t *testing.T, handler http.Handler) (got Health, status int, age string) {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, healthPage, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("status %d: %v", w.Code, err)
	}
	return got, w.Code, w.Header().Get("Age")
}

// TestHealthIsNotKnownBeforeTheFirstCheck: then it is answered 404, as by YuniKorn.
func TestHealthIsNotKnownBeforeTheFirstCheck(t *testing.T) {
	runs := 0
	server := newServer(Options{Checks: []HealthCheck{{Name: "Books", Run: func(func(time.Duration) bool) error { runs++; return nil }}}})
	for range 3 {
		if _, status, _ := readHealth(t, server.Handler()); status != http.StatusNotFound {
			t.Errorf("status %d", status)
		}
	}
	if told := server.checked(); runs > 0 || !told.At.IsZero() {
		t.Errorf("readers ran %d checks; the pages are told %+v", runs, told)
	}
}

// TestChecksRunAtTheirPace: at the start, and then once in an interval, which is longer
// where they take long. Readers change nothing of it, and wait for none.
func TestChecksRunAtTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type result struct {
			err   error
			takes time.Duration
		}
		var runs atomic.Int32
		var next atomic.Pointer[result]
		const first = checkInterval / checkRest // so it changes no pace
		next.Store(&result{takes: first})
		server := newServer(Options{Checks: []HealthCheck{{Name: "Books", Run: func(func(time.Duration) bool) error {
			runs.Add(1)
			found := next.Load()
			time.Sleep(found.takes)
			return found.err
		}}}})
		ctx, stop := context.WithCancel(t.Context())
		go server.health.run(ctx)
		after := func(pause time.Duration, wantRuns int32, healthy bool, wantAge string) {
			t.Helper()
			time.Sleep(pause)
			synctest.Wait()
			for range 3 {
				asked := time.Now()
				got, _, age := readHealth(t, server.Handler())
				if waited := time.Since(asked); waited > 0 {
					t.Errorf("a reader waited %v", waited)
				}
				if got.Healthy != healthy || runs.Load() != wantRuns || age != wantAge {
					t.Errorf("healthy %v, %s s old, after %d runs; want %v, %s, %d", got.Healthy, age, runs.Load(), healthy, wantAge, wantRuns)
				}
			}
		}
		after(0, 1, false, "") // the first one is under way
		after(first, 1, true, "0")
		after(checkInterval-first-1, 1, true, "4")
		next.Store(&result{errors.New("wrong"), checkInterval})
		after(1, 2, true, "5") // the second one is under way
		after(checkInterval, 2, false, "5")
		next.Store(&result{})
		after(checkPause-1, 2, false, "64")
		after(1, 3, true, "0")
		stop()
		time.Sleep(2 * checkRest * checkInterval)
		expect.Same(t, "runs after the end", int32(3), runs.Load())
	})
}

// TestWaitingIsNoWork: the checks rest for what they do, not for what they wait to look
// again. A check that waits ends with the others, and says nothing more.
func TestWaitingIsNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 3 * time.Second
		var looks, cut atomic.Int32
		server := newServer(Options{Checks: []HealthCheck{{Name: "Pods", Run: func(pause func(time.Duration) bool) error {
			looks.Add(1)
			if !pause(wait) {
				cut.Add(1)
				return errors.New("cut short")
			}
			return nil
		}}}})
		ctx, stop := context.WithCancel(t.Context())
		go server.health.run(ctx)
		for look := range int32(4) {
			synctest.Wait()
			expect.Same(t, "looks", look+1, looks.Load())
			time.Sleep(wait + checkInterval)
		}
		synctest.Wait() // the fifth look waits
		stop()
		synctest.Wait()
		if got, _, _ := readHealth(t, server.Handler()); !got.Healthy || cut.Load() != 1 || looks.Load() != 5 {
			t.Errorf("healthy %v; %d looks, %d were cut short", got.Healthy, looks.Load(), cut.Load())
		}
	})
}

// TestAPanicOfACheckIsSaid: it stops neither the scheduler nor the other checks.
func TestAPanicOfACheckIsSaid(t *testing.T) {
	server := newServer(Options{Checks: []HealthCheck{
		{Name: "Broken", Run: func(func(time.Duration) bool) error { panic("no node") }}, {Name: "Books", Run: func(func(time.Duration) bool) error { return nil }},
	}})
	server.CheckHealth()
	got, status, _ := readHealth(t, server.Handler())
	if status != http.StatusOK || got.Healthy || len(got.HealthChecks) != 2 || !got.HealthChecks[1].Succeeded ||
		!strings.Contains(got.HealthChecks[0].DiagnosisMessage, "no node") {
		t.Errorf("%d %+v", status, got)
	}
}
