package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// patient is how long the tests wait for what has to happen. It is used up only when
// one fails: others may have the cores.
const patient = 2 * time.Minute

// stalled is a reader that never reads: a write to it does not come to an end before
// the reader is gone.
type stalled struct {
	header  http.Header
	status  int
	begun   sync.Once
	writing chan struct{} // closed by the first write
	gone    <-chan struct{}
}

func (w *stalled) Header() http.Header              { return w.header }
func (w *stalled) WriteHeader(status int)           { w.status = status }
func (*stalled) Flush()                             {}
func (*stalled) SetWriteDeadline(_ time.Time) error { return nil }

func (w *stalled) Write([]byte) (int, error) {
	w.begun.Do(func() { close(w.writing) })
	<-w.gone
	return 0, io.ErrClosedPipe
}

// heldUp tells whether a step does not come to an end while every page is being written
// to a reader that never reads. A page with a body after its path is posted. What takes
// longer than wait counts as never.
func heldUp(t *testing.T, handler http.Handler, pages []string, step func(), wait time.Duration) error {
	t.Helper()
	gone := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer close(gone)
	defer stop()
	for _, page := range pages {
		w := &stalled{header: http.Header{}, writing: make(chan struct{}), gone: gone}
		method := http.MethodGet
		path, body, posted := strings.Cut(page, " ")
		if posted {
			method = http.MethodPost
		}
		r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		r.Header.Set("Accept-Encoding", "gzip")
		readers.Go(func() { handler.ServeHTTP(w, r) })
		select {
		case <-w.writing:
			if w.status == http.StatusServiceUnavailable {
				return errors.New(page + " gets no turn while others are not read")
			}
		case <-time.After(patient):
			return errors.New(page + " is not answered while others are not read")
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		step()
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(wait):
		return errors.New("the step waits for a reader")
	}
}

// cycle is what the scheduler asks of the store while it places a pod, makes room for
// one and goes on; all of it takes the store's lock.
func (c *cluster) cycle(t *testing.T) {
	outputs := c.does(t, `
		pod name=more queue=root.b app=more request=vcore=1
		wait for=0s
		preempt name=more
		pod name=more queue=root.b app=more request=vcore=1 stuck
	`)
	expect.Says(t, outputs[2], "(law 4)") // a plan is made, and refused
	_, why := c.Store.Commit("uid-a1", nil, c.Now)
	expect.That(t, why.None(), "the plan is not carried out: %v", why)
	c.does(t, `
		pod name=more queue=root.b app=more request=vcore=1 node=n1
		delete name=more
	`)
}

// TestACycleWaitsForNoReader: no page is written while a lock of the store, or of what
// the next reader needs, is held.
func TestACycleWaitsForNoReader(t *testing.T) {
	c := busyCluster(t)
	c.server.options.Previewer = func() Previewer { return echo{} }
	pages := pagesOf(c.server, "{queue}", "root.b", "{application}", "job", "{node}", "n1",
		"{user}", "dev1", "{group}", "dev")
	pages = append(pages, "/ws/v1/events/stream?count=9", "/debug/fullstatedump", "/api/v1/decisions", "/api/v1/holds", "/api/v1/pods/ns/a1/explain",
		"/", "/waiting", "/nodes", "/decisions", "/configuration", "/health", "/api/v1/preview a pod", "/ws/v1/validate-conf partitions: []")
	slices.Sort(pages)
	expect.Holds(t, heldUp(t, c.server.Handler(), slices.Concat(pages, pages), func() { c.cycle(t) }, patient))
}

// TestACycleThatWaitsIsNoticed: a page that is written while the lock is held.
func TestACycleThatWaitsIsNoticed(t *testing.T) {
	var lock sync.Mutex
	writes := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		_, _ = io.WriteString(w, "all there is")
	})
	step := func() {
		lock.Lock()
		defer lock.Unlock()
	}
	expect.That(t, heldUp(t, writes, []string{"/"}, step, 50*time.Millisecond) != nil,
		"a step that waits for a reader passes")
}
