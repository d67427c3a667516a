package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// checking is a server with one check.
func checking(run func(pause func(time.Duration) bool) error) *Server {
	return newServer(Options{Checks: []HealthCheck{{Name: "Books", Run: run}}})
}

// readHealth is what a reader of the health is told.
func readHealth(t *testing.T, handler http.Handler) (got Health, status int, age string) {
	t.Helper()
	w := ask(handler, http.MethodGet, "/ws/v1/scheduler/healthcheck", "")
	expect.OK(t, json.Unmarshal(w.Body.Bytes(), &got))
	return got, w.Code, w.Header().Get("Age")
}

// TestHealthIsNotKnownBeforeTheFirstCheck: then it is answered 404, as by YuniKorn.
func TestHealthIsNotKnownBeforeTheFirstCheck(t *testing.T) {
	runs := 0
	server := checking(func(func(time.Duration) bool) error { runs++; return nil })
	for range 3 {
		_, status, _ := readHealth(t, server.Handler())
		expect.Same(t, "status", http.StatusNotFound, status)
	}
	told := server.checked()
	expect.That(t, runs == 0 && told.At.IsZero(), "readers ran %d checks; told is %+v", runs, told)
}

// TestChecksRunAtTheirPace: at the start, and then once in an interval, which is longer
// where they take long. Readers change nothing of it, and wait for none.
func TestChecksRunAtTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first = checkInterval / checkRest // so it changes no pace
		type result struct {
			err   error
			takes time.Duration
		}
		var runs atomic.Int32
		var next atomic.Pointer[result]
		next.Store(&result{takes: first})
		server := checking(func(func(time.Duration) bool) error {
			runs.Add(1)
			found := next.Load()
			time.Sleep(found.takes)
			return found.err
		})
		ctx, stop := context.WithCancel(t.Context())
		go server.health.run(ctx)
		after := func(pause time.Duration, wantRuns int32, healthy bool, wantAge string) {
			t.Helper()
			time.Sleep(pause)
			synctest.Wait()
			for range 3 {
				asked := time.Now()
				got, _, age := readHealth(t, server.Handler())
				waited := time.Since(asked)
				expect.That(t, waited <= 0, "a reader waited %v", waited)
				expect.Same(t, "healthy", healthy, got.Healthy)
				expect.Same(t, "runs", wantRuns, runs.Load())
				expect.Same(t, "age", wantAge, age)
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
		server := checking(func(pause func(time.Duration) bool) error {
			looks.Add(1)
			if !pause(wait) {
				cut.Add(1)
				return errors.New("cut short")
			}
			return nil
		})
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
		got, _, _ := readHealth(t, server.Handler())
		expect.That(t, got.Healthy && cut.Load() == 1 && looks.Load() == 5, "%+v: %d looks", got, looks.Load())
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
