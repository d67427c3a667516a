package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// served is a server in memory: its connections use the time of a synctest bubble, and a
// write waits until it is read.
type served struct {
	*cluster
	opened chan net.Conn
}

// serveCluster serves until the end of the test.
func serveCluster(t *testing.T, c *cluster, limit func(*limits)) served {
	t.Helper()
	limit(&c.server.limits)
	p := pipes{make(chan net.Conn), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.server.Serve(t.Context(), p, klog.Background())
	}()
	t.Cleanup(func() { <-done })
	return served{c, p.opened}
}

func quietly(*limits) {}

// pipes is a listener with connections in memory. A server closes it once.
type pipes struct {
	opened chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.opened:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1} }

type reader struct {
	net.Conn
	lines *bufio.Reader
}

func (s served) open(t *testing.T, address string) reader {
	near, far := net.Pipe()
	s.opened <- from{far, address}
	t.Cleanup(func() { _ = near.Close() })
	return reader{near, bufio.NewReader(near)}
}

// dial opens a connection from this machine and sends what is given, which may be answered
// before all of it is read.
func (s served) dial(t *testing.T, text string) reader {
	r := s.open(t, "127.0.0.1")
	go func() { _, _ = io.WriteString(r, text) }()
	return r
}

// answer returns the status and the body of the next answer; 0 for none.
func (r reader) answer() (status int, body string) {
	answer, err := http.ReadResponse(r.lines, nil)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// ask returns the status of the answer to a request with a token; 0 for none.
func (r reader) ask(token string) int {
	request := "GET /ws/v1/clusters HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + token + "\r\n\r\n"
	if _, err := io.WriteString(r, request); err != nil {
		return 0
	}
	status, _ := r.answer()
	return status
}

// TestTooManyRequests: a request that gets no turn in time is answered with 503, and
// every turn is given back.
func TestTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := inFlight{semaphore.NewWeighted(1)}
		handler := f.wrap(http.NotFoundHandler())
		f.enter()
		began := time.Now()
		w := ask(handler, http.MethodGet, "/", "")
		expect.Same(t, "without a turn", http.StatusServiceUnavailable, w.Code)
		expect.That(t, w.Header().Get("Retry-After") != "", "%v", w.Header())
		expect.Same(t, "it waits for its turn", patience, time.Since(began))
		f.leave()
		expect.Same(t, "with a turn", http.StatusNotFound, ask(handler, http.MethodGet, "/", "").Code)
		expect.That(t, f.TryAcquire(1), "its turn is not given back")
	})
}

// TestLargeDocumentsHoldUpNoOtherPage: one document is looked at at a time, and a
// request that waits for that holds up no other page.
func TestLargeDocumentsHoldUpNoOtherPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(Options{})
		handler := server.Handler()
		validate := func() int {
			return ask(handler, http.MethodPost, "/ws/v1/validate-conf", "partitions: []").Code
		}
		expect.That(t, server.validations.TryAcquire(1), "another document cannot be looked at")
		answered := make(chan int)
		go func() { answered <- validate() }()
		synctest.Wait()
		expect.Same(t, "another page", 404, ask(handler, http.MethodGet, "/ws/v1/nothing", "").Code)
		server.validations.Release(1)
		expect.Same(t, "the next document", http.StatusOK, <-answered)
		expect.That(t, server.validations.TryAcquire(1), "the turn is not given back")
		expect.Same(t, "a document that waited too long", http.StatusServiceUnavailable, validate())
	})
}

func TestLargeRequestsAreRefused(t *testing.T) {
	const host, validate = " HTTP/1.1\r\nHost: localhost\r\n", "POST /ws/v1/validate-conf"
	const queue = "GET " + partitionPath + "queue/"
	letters := func(n int) string { return strings.Repeat("#", n) }
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"a large header", "GET /" + host + "X: " + letters(100<<10) + "\r\n\r\n", 431},
		{"a large body", validate + host + "Content-Length: 1001\r\n\r\n" + letters(1001), 413},
		{"as large as may be", validate + host + "Content-Length: 1000\r\n\r\n" + letters(1000), 200},
		{"in chunks", validate + host + "Transfer-Encoding: chunked\r\n\r\n3\r\n#ab\r\n0\r\n\r\n", 200},
		{"no such method", "BREW /ws/v1/validate-conf" + host + "\r\n", 405},
		{"a long path", queue + strings.Repeat("root.", 1000) + "a" + host + "\r\n", 404},
		{"bytes that no name has", queue + "root%2Fa%00%23/applications" + host + "\r\n", 404},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := serveCluster(t, newCluster(t, ""), func(l *limits) { l.bodyBytes = 1000 })
			status, _ := s.dial(t, tt.text).answer()
			expect.Same(t, tt.name, tt.want, status)
		})
	}
}

// TestConnectionsAreBounded: one more than the limit is closed without an answer, and the place of
// one that is closed is given to another.
func TestConnectionsAreBounded(t *testing.T) {
	for name, limit := range map[string]func(*limits){
		"all":      func(l *limits) { l.connections = 3 },
		"per host": func(l *limits) { l.perHost = 3 },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := serveCluster(t, newCluster(t, ""), limit)
			first := s.open(t, "127.0.0.1")
			expect.Same(t, name+": the first one", http.StatusOK, first.ask(""))
			for _, want := range []int{http.StatusOK, http.StatusOK, 0, 0} {
				expect.Same(t, name+": one more", want, s.open(t, "127.0.0.1").ask(""))
			}
			_ = first.Close()
			synctest.Wait()
			expect.Same(t, name+": in the place of the first one", http.StatusOK, s.open(t, "127.0.0.1").ask(""))
		})
	}
}

func TestPagesOfOtherOriginsMayAsk(t *testing.T) {
	c := newCluster(t, "")
	for path, want := range map[string]string{
		queuesPath: "GET, HEAD, OPTIONS", "/ws/v1/validate-conf": "POST, OPTIONS",
	} {
		r, body := c.do(http.MethodOptions, path)
		expect.That(t, r.Code == http.StatusNoContent && len(body) == 0, "%s: %d %q", path, r.Code, body)
		expect.Same(t, path+": methods", want, r.Header().Get("Access-Control-Allow-Methods"))
		expect.Same(t, path+": origin", "*", r.Header().Get("Access-Control-Allow-Origin"))
	}
}

// brief are limits that differ from each other, so that one is not taken for another.
func brief(l *limits) {
	l.headerTime, l.readTime, l.writeTime, l.idleTime = 3*time.Second, 5*time.Second, 7*time.Second, 11*time.Second
}

const (
	clustersRequest = "GET /ws/v1/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n"
	// validateRequest lacks its body of 14 bytes.
	validateRequest = "POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\n" +
		"Connection: close\r\nContent-Length: 14\r\n\r\n"
)

// TestSilentConnectionIsClosed: a client that sends nothing more keeps the connection for as
// long as the limits say.
func TestSilentConnectionIsClosed(t *testing.T) {
	var l limits
	brief(&l)
	for _, tt := range []struct {
		name, sent string
		kept       time.Duration
	}{
		{"nothing", "", l.headerTime},
		{"half a header", "GET /ws/v1/partitions HTTP/1.1\r\nHost: localhost\r\nAcc", l.headerTime},
		{"half a body", validateRequest + "parti", l.readTime},
		{"a request", clustersRequest, l.idleTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := serveCluster(t, newCluster(t, ""), brief)
			began := time.Now()
			answer := expect.Get(io.ReadAll(s.dial(t, tt.sent)))(t)
			took := time.Since(began)
			expect.That(t, took >= tt.kept && took <= tt.kept+time.Second,
				"%s: it is kept for %v, want %v; answered was %q", tt.name, took, tt.kept, answer)
		})
	}
}

// TestSlowReadersAreCut: a client may read its answer for as long as the limit says, and gets
// nothing of it after that.
func TestSlowReadersAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveCluster(t, newCluster(t, ""), brief)
		conn := s.dial(t, clustersRequest)
		time.Sleep(s.server.limits.writeTime + time.Second)
		expect.Same(t, "read too late", "", string(expect.Get(io.ReadAll(conn))(t)))
	})
}

// TestSlowSendersAreFew: a few slow documents are read at a time and the others are told
// to come back; once the few are cut, others are read.
func TestSlowSendersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveCluster(t, newCluster(t, ""), brief)
		answers := make(chan int, 20)
		send := func(body string) {
			conn := s.dial(t, validateRequest+body)
			go func() {
				code, _ := conn.answer()
				answers <- code
			}()
		}
		few := int(s.server.limits.drafts)
		for range few {
			send("parti")
			synctest.Wait()
		}
		for range 10 {
			send("partitions: []")
			expect.Same(t, "one more beside the few", http.StatusServiceUnavailable, <-answers)
		}
		for range few {
			expect.That(t, <-answers != http.StatusOK, "half a document is valid")
		}
		synctest.Wait()
		send("partitions: []")
		expect.Same(t, "after the slow ones were cut", http.StatusOK, <-answers)
	})
}

// TestWhatSlowSendersHoldIsDocumented: the page has the products of the limits.
func TestWhatSlowSendersHoldIsDocumented(t *testing.T) {
	page := expect.Get(os.ReadFile("../../docs/rest.md"))(t)
	l := defaultLimits()
	each := l.bodyBytes >> 20
	expect.Says(t, string(page),
		fmt.Sprintf("at most %d documents to validate are in memory, %d MiB each", l.drafts, each),
		fmt.Sprintf("There are at most %d connections, %d from one address", l.connections, l.perHost),
		fmt.Sprintf("each for %d s at most", (l.readTime+patience)/time.Second))
}

// patient is how long the tests wait for what has to happen. It is used up only when
// one fails: others may have the cores.
const patient = 2 * time.Minute

// stalled is a reader that never reads: a write to it does not come to an end before the reader is gone.
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

// heldUp tells whether a step does not come to an end while every page is being written to a reader that
// never reads. A page with a body after its path is posted. What takes longer than wait counts as never.
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
		path, body, posted := strings.Cut(page, " ")
		method := http.MethodGet
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
	expect.Fails(t, heldUp(t, writes, []string{"/"}, step, 50*time.Millisecond), "waits for a reader")
}
