package rest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const nodesPath = "/ws/v1/partition/default/nodes"

// served is a server on a port of its own, or in memory.
type served struct {
	*cluster
	address string
	open    func() (net.Conn, error) // makes a connection to it
}

func serveCluster(t *testing.T, c *cluster, limit func(*limits)) served {
	t.Helper()
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := servedAt(c, listener.Addr().String())
	limit(&c.server.limits)
	s.serve(t, narrow{listener})
	return s
}

// servedAt is a server that others serve on a port. Connections have small buffers.
func servedAt(c *cluster, address string) served {
	return served{c, address, func() (net.Conn, error) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4096)
		}
		return conn, err
	}}
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

// crowd puts many pods on one node, so that an answer is larger than any buffer on the way.
func crowd(t *testing.T, c *cluster) {
	c.node(t, "n", "vcore=1k pods=100k")
	request := amountsOf(t, "vcore=1m pods=1")
	long := strings.Repeat("x", 1000)
	for i := range 10000 {
		c.store.Upsert(objects.Pod{
			Identity: objects.Identity{
				UID: types.UID(fmt.Sprint("u", i)), Namespace: "ns", Name: fmt.Sprint("p", i), Created: c.now,
				Labels: map[string]string{"queue": "root.default", "long": long},
			},
			Status:  objects.Status{Node: "n"},
			Request: request,
		}, c.now)
	}
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

func TestSlowReadersAreCut(t *testing.T) {
	c := newCluster(t, "")
	crowd(t, c)
	l := defaultLimits()
	l.writeTime = 100 * time.Millisecond
	server := l.server(c.server.Handler())
	over := make(chan struct{})
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(over)
		}
	}
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	servedAt(c, listener.Addr().String()).dial(t, "GET "+nodesPath+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	select {
	case <-over:
	case <-time.After(patient):
		t.Error("the answer for a reader that reads nothing is never given up")
	}
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

const clustersRequest = "GET /ws/v1/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n"

// began is nil once the first byte of an answer is there, and otherwise says what came
// instead of it.
func began(conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(patient))
	_, err := conn.Read(make([]byte, 1))
	return err
}

// oneMore opens three connections, each of which is to be answered, and then one
// more, which is to be turned away: it asks, and is closed without an answer.
func oneMore(t *testing.T, s served) (three []net.Conn, wrong error) {
	t.Helper()
	for range 3 {
		conn := s.dial(t, clustersRequest)
		expect.OK(t, began(conn))
		three = append(three, conn)
	}
	conn := expect.Get(s.open())(t)
	defer func() { _ = conn.Close() }()
	// It may be closed before it has asked: then that is what reading says, too.
	_, _ = io.WriteString(conn, clustersRequest)
	switch err := began(conn); {
	case err == nil:
		return three, errors.New("one more than the limit is answered")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return three, nil
	default:
		return three, fmt.Errorf("one more than the limit is not turned away: %w", err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	for name, limit := range map[string]func(*limits){
		"all":      func(l *limits) { l.connections = 3 },
		"per host": func(l *limits) { l.perHost = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			s := serveCluster(t, newCluster(t, ""), limit)
			conns := expect.Get(oneMore(t, s))(t)
			_ = conns[0].Close()
			for deadline := time.Now().Add(patient); ; {
				conn, err := net.Dial("tcp", s.address)
				expect.OK(t, err)
				_, _ = io.WriteString(conn, clustersRequest)
				err = began(conn)
				_ = conn.Close()
				if err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the place of one that is closed is not given to another: ", err)
				}
			}
		})
	}
}

func TestAnswersAreCompressed(t *testing.T) {
	c := referenceCluster(t)
	ask := func(path, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		c.http.ServeHTTP(w, r)
		return w
	}
	plainly, packed, short := ask(nodesPath, ""), ask(nodesPath, "gzip"), ask("/ws/v1/history/apps", "gzip")
	if plainly.Header().Get("Content-Encoding") != "" || packed.Header().Get("Content-Encoding") != "gzip" || short.Header().Get("Content-Encoding") != "" {
		t.Errorf("encodings: %q without asking, %q when asked for, %q of a short answer", plainly.Header(), packed.Header(), short.Header())
	}
	unpacked, err := gunzip(packed.Body.Bytes())
	if err != nil || unpacked != plainly.Body.String() {
		t.Errorf("compressed answer differs (%v):\n%s\n%s", err, unpacked, plainly.Body)
	}
}

func gunzip(packed []byte) (string, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(reader)
	return string(text), err
}

func TestPagesOfOtherOriginsMayAsk(t *testing.T) {
	c := newCluster(t, "")
	for path, want := range map[string]string{nodesPath: "GET, HEAD, OPTIONS", "/ws/v1/validate-conf": "POST, OPTIONS"} {
		r, body := c.do(t, http.MethodOptions, path)
		if r.Code != http.StatusNoContent || len(body) > 0 || r.Header().Get("Access-Control-Allow-Methods") != want ||
			r.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v %q", path, r.Code, r.Header(), body)
		}
	}
}
