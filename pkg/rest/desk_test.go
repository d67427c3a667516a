package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// greedy is how long a desk worked within ten seconds for five readers who ask without
// pause for what takes so long, and how many answers it made.
func greedy(t *testing.T, takes time.Duration, at func(d *desk, h http.Handler) http.Handler) (worked time.Duration, answers int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		handler := at(&desk{seats: make(chan struct{}, 1)}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(takes)
			mu.Lock()
			defer mu.Unlock()
			if time.Since(began) <= 10*time.Second {
				worked += takes
				answers++
			}
			w.WriteHeader(http.StatusOK)
		}))
		var readers sync.WaitGroup
		for range 5 {
			readers.Go(func() {
				for time.Since(began) < 10*time.Second {
					handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
				}
			})
		}
		readers.Wait()
	})
	return worked, answers
}

func TestGreedyReadersHaveHalfOfASeat(t *testing.T) {
	atDesk := func(d *desk, h http.Handler) http.Handler { return d.wrap(h) }
	for _, takes := range []time.Duration{time.Second, 100 * time.Millisecond, time.Millisecond} {
		if worked, _ := greedy(t, takes, atDesk); worked < 4*time.Second || worked > 6*time.Second {
			t.Errorf("of pages that take %v the desk made %v in ten seconds, want half of the time", takes, worked)
		}
	}
	// What costs nothing here costs the network something.
	if _, answers := greedy(t, 0, atDesk); answers > 60_000 || answers < 20_000 {
		t.Errorf("%d answers in ten seconds", answers)
	}
	// The same readers at a desk that does not rest.
	if worked, _ := greedy(t, 100*time.Millisecond, func(d *desk, h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d.sit()
			defer d.stand()
			h.ServeHTTP(w, r)
		})
	}); worked < 9*time.Second {
		t.Errorf("without a rest only %v: the claims above prove nothing", worked)
	}
}

// TestLargeDocumentsKeepNobodyFromTheDesk: one document is looked at at a time, and
// who waits for that keeps nobody else.
func TestLargeDocumentsKeepNobodyFromTheDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := NewServer(Options{})
		handler := server.Handler()
		validate := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/ws/v1/validate-conf", strings.NewReader("partitions: []")))
			return w.Code
		}
		done, ok := server.validations.pass(t.Context()) // somebody's document is looked at
		if !ok {
			t.Fatal("no turn")
		}
		answered := make(chan int, 2)
		go func() { answered <- validate(t.Context()) }()
		synctest.Wait()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ws/v1/nothing", http.NoBody))
		if w.Code != http.StatusNotFound {
			t.Errorf("another page is answered with %d", w.Code)
		}
		time.Sleep(time.Second)
		done(time.Second)
		began := time.Now()
		if code := <-answered; code != http.StatusOK || time.Since(began) != turnRest*time.Second {
			t.Errorf("the next document: %d after %v", code, time.Since(began))
		}
		if _, ok := server.validations.pass(t.Context()); !ok {
			t.Fatal("no turn")
		}
		if code := validate(t.Context()); code != http.StatusServiceUnavailable {
			t.Errorf("who waited longer than anybody should: %d", code)
		}
	})
}
