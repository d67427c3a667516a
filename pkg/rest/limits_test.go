package rest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"

	"golang.org/x/sync/semaphore"
	"k8s.io/klog/v2"
)

// served is a server on a port of its own, or in memory.
type served struct {
	*cluster
	address string
	open    func() (net.Conn, error) // makes a connection to it
}

// serveCluster serves on a port, until the end of the test. Connections have small buffers.
func serveCluster(t *testing.T, c *cluster, limit func(*limits)) served {
	t.Helper()
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	s := served{c, address, func() (net.Conn, error) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4096)
		}
		return conn, err
	}}
	limit(&c.server.limits)
	s.serve(t, narrow{listener})
	return s
}

// serve serves until the end of the test.
func (s served) serve(t *testing.T, listener net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.server.Serve(ctx, listener, klog.Background())
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// narrow accepts connections with small buffers.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return conn, err
}

// dial opens a connection and sends what is given.
func (s served) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	conn := expect.Get(s.open())(t)
	t.Cleanup(func() { _ = conn.Close() })
	expect.Get(io.WriteString(conn, text))(t)
	return conn
}

// free tells whether no answer is being made.
func (f inFlight) free() bool {
	most := int64(max(1, runtime.GOMAXPROCS(0)/4))
	if !f.TryAcquire(most) {
		return false
	}
	f.Release(most)
	return true
}

// TestTooManyRequests: a request that gets no turn in time is answered with 503, and
// every turn is given back.
func TestTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := inFlight{semaphore.NewWeighted(1)}
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			f.wrap(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			return w
		}
		f.enter()
		began := time.Now()
		if w := ask(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || time.Since(began) != patience {
			t.Errorf("%d %v after %v", w.Code, w.Header(), time.Since(began))
		}
		f.leave()
		if w := ask(); w.Code != http.StatusNotFound || !f.TryAcquire(1) {
			t.Errorf("%d, or its turn is not given back", w.Code)
		}
	})
}

// TestLargeDocumentsHoldUpNoOtherPage: one document is looked at at a time, and a
// request that waits for that holds up no other page.
func TestLargeDocumentsHoldUpNoOtherPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(Options{})
		handler := server.Handler()
		ask := func(method, path, body string) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
			return w.Code
		}
		validate := func() int { return ask(http.MethodPost, "/ws/v1/validate-conf", "partitions: []") }
		if !server.validations.TryAcquire(1) { // another document is looked at
			t.Fatal("no turn")
		}
		answered := make(chan int)
		go func() { answered <- validate() }()
		synctest.Wait()
		if code := ask(http.MethodGet, "/ws/v1/nothing", ""); code != http.StatusNotFound {
			t.Errorf("another page is answered with %d", code)
		}
		server.validations.Release(1)
		expect.Same(t, "the next document", http.StatusOK, <-answered)
		if !server.validations.TryAcquire(1) {
			t.Fatal("the turn is not given back")
		}
		expect.Same(t, "a document that waited too long", http.StatusServiceUnavailable, validate())
	})
}

func TestLargeRequestsAreRefused(t *testing.T) {
	s := serveCluster(t, newCluster(t, ""), func(l *limits) { l.bodyBytes = 1000 })
	for text, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n":                              http.StatusRequestHeaderFieldsTooLarge,
		"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n" + strings.Repeat("#", 1001): http.StatusRequestEntityTooLarge,
		"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("#", 1000): http.StatusOK,
		"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n#ab\r\n0\r\n\r\n":  http.StatusOK,
		"BREW /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                     http.StatusMethodNotAllowed,
		"GET /ws/v1/partition/default/queue/" + strings.Repeat("root.", 1000) + "a HTTP/1.1\r\nHost: localhost\r\n\r\n":     http.StatusNotFound,
		"GET /ws/v1/partition/default/queue/root%2Fa%00%23/applications HTTP/1.1\r\nHost: localhost\r\n\r\n":                http.StatusNotFound,
	} {
		conn := s.dial(t, text)
		_ = conn.SetReadDeadline(time.Now().Add(patient))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		expect.Same(t, fmt.Sprintf("answer to %.40q", text), want, answer.StatusCode)
		_ = answer.Body.Close()
	}
}

// TestConnectionsAreBounded: one more than the limit is closed without an answer, and the place of
// one that is closed is given to another.
func TestConnectionsAreBounded(t *testing.T) {
	for name, limit := range map[string]func(*limits){
		"all":      func(l *limits) { l.connections = 3 },
		"per host": func(l *limits) { l.perHost = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, "")
				limit(&c.server.limits)
				open := serveFrom(t, c)
				first := open("127.0.0.1")
				expect.Same(t, "answer on the first one", http.StatusOK, first.ask(""))
				for _, want := range []int{http.StatusOK, http.StatusOK, 0, 0} {
					expect.Same(t, "answer on one more", want, open("127.0.0.1").ask(""))
				}
				_ = first.Close()
				synctest.Wait()
				expect.Same(t, "answer in the place of the first one", http.StatusOK, open("127.0.0.1").ask(""))
			})
		})
	}
}

func TestPagesOfOtherOriginsMayAsk(t *testing.T) {
	c := newCluster(t, "")
	for path, want := range map[string]string{
		queuesPath: "GET, HEAD, OPTIONS", "/ws/v1/validate-conf": "POST, OPTIONS",
	} {
		r, body := c.do(t, http.MethodOptions, path)
		if r.Code != http.StatusNoContent || len(body) > 0 || r.Header().Get("Access-Control-Allow-Methods") != want ||
			r.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v %q", path, r.Code, r.Header(), body)
		}
	}
}
