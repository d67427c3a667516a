package rest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// streaming is a stream with a reader.
type streaming struct {
	net.Conn
	answer *http.Response
	lines  *bufio.Reader
}

func (s served) stream(t *testing.T, query string, headers ...string) streaming {
	t.Helper()
	lines := append([]string{"GET " + streamPath + query + " HTTP/1.1", "Host: localhost", "Accept-Encoding: gzip"}, headers...)
	conn := s.dial(t, strings.Join(lines, "\r\n")+"\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(patient))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // it would wait for the end of the stream
	expect.OK(t, err)
	return streaming{conn, answer, bufio.NewReader(answer.Body)}
}

func (s streaming) line(t *testing.T) (out struct {
	InstanceUUID string
	ReferenceID  string
}) {
	t.Helper()
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v after %q", err, line)
	}
	if err := json.Unmarshal(line, &out); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	return out
}

func quietly(*limits) {}

// pipes is a listener with connections in memory, so that they use the time of a synctest
// bubble. A write waits until it is read.
type pipes struct {
	opened chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() pipes {
	p := pipes{opened: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// Accept, Close and Addr make it a net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.opened:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { p.close(); return nil }

func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// servePiped serves in memory, until the end of the test.
func servePiped(t *testing.T, c *cluster, limit func(*limits)) served {
	t.Helper()
	p := newPipes()
	s := served{c, p.Addr().String(), func() (net.Conn, error) {
		near, far := net.Pipe()
		p.opened <- far
		return near, nil
	}}
	limit(&c.server.limits)
	s.serve(t, p)
	return s
}

func TestEventStream(t *testing.T) {
	synctest.Test(t, eventStream)
}

func eventStream(t *testing.T) {
	c := newCluster(t, "")
	s := servePiped(t, c, quietly)
	c.foreign(t, 3)
	stream := s.stream(t, "?count=2")
	if stream.answer.StatusCode != http.StatusOK || stream.answer.Header.Get("Content-Type") != "application/json; charset=UTF-8" ||
		stream.answer.Header.Get("Content-Encoding") != "" {
		t.Errorf("%s %v", stream.answer.Status, stream.answer.Header)
	}
	expect.Same(t, "instance", c.batch(t, "").InstanceUUID, stream.line(t).InstanceUUID)
	for _, want := range []string{"f2", "f3"} {
		expect.Same(t, "the next event is of", want, stream.line(t).ReferenceID)
	}
	time.Sleep(c.server.limits.readTime + c.server.limits.writeTime) // longer than any other request may take
	for range 3 {
		c.foreign(t, 1)
		c.server.options.Events.Collect()
		expect.Same(t, "the next event is of", fmt.Sprint("f", c.pods), stream.line(t).ReferenceID)
	}
	news := s.stream(t, "")
	news.line(t)
	c.foreign(t, 1)
	c.server.options.Events.Collect()
	expect.Same(t, "the first one without count, of what happens from now on", "f7", news.line(t).ReferenceID)
	for method, want := range map[string]int{http.MethodHead: http.StatusOK, http.MethodPost: http.StatusMethodNotAllowed, http.MethodOptions: http.StatusNoContent} {
		if r, _ := c.do(t, method, streamPath); r.Code != want {
			t.Errorf("%s: %d, want %d", method, r.Code, want)
		}
	}
	if r, _ := c.do(t, http.MethodGet, streamPath+"?count=x"); r.Code != http.StatusBadRequest {
		t.Errorf("count=x: %d", r.Code)
	}
}

// eventually tries until it holds.
// patient is how long the tests wait for what has to happen. It is used up only when
// one fails: others may have the cores.
const patient = 2 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	for name, limit := range map[string]func(*limits){
		"all":      func(l *limits) { l.streams = 3 },
		"per host": func(l *limits) { l.streamsPerHost = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			s := serveCluster(t, newCluster(t, ""), limit)
			var open []streaming
			for range 3 {
				open = append(open, s.stream(t, ""))
				open[len(open)-1].line(t)
			}
			expect.Same(t, "one more than the limit", http.StatusServiceUnavailable, s.stream(t, "").answer.StatusCode)
			_ = open[0].Close()
			eventually(t, "the place of one that was closed is not given to another", func() bool {
				return s.stream(t, "").answer.StatusCode == http.StatusOK
			})
		})
	}
}

func TestStreamsAreInTheDump(t *testing.T) {
	c := newCluster(t, "")
	s := serveCluster(t, c, quietly)
	s.stream(t, "").line(t)
	_, body := c.do(t, http.MethodGet, "/ws/v1/fullstatedump")
	served := contract{kinds: readJSON(t, "testdata/contract.json"), served: map[string]bool{}}
	var dump any
	expect.OK(t, json.Unmarshal(body, &dump))
	if served.check("dump", "dump", dump); len(served.wrong) > 0 || !served.served["stream.Name"] || !served.served["stream.CreatedAt"] {
		t.Errorf("%q, %s", served.wrong, body)
	}
}

// flood has more happen than the buffers on the way to a reader hold.
func flood(t *testing.T, c *cluster, until func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !until(); {
		c.foreign(t, 1000)
		c.server.options.Events.Collect()
		if time.Now().After(deadline) {
			t.Fatal("they are never cut", c.pods, len(c.server.streams.list()))
		}
	}
}

// TestReadersThatDoNotReadAreCut: they hold up neither each other nor the store nor other
// requests.
func TestReadersThatDoNotReadAreCut(t *testing.T) {
	c := newCluster(t, "")
	c.node(t, "n", "vcore=1 pods=1")
	s := serveCluster(t, c, func(l *limits) { l.streamTime = 4 * time.Second })
	for range 10 {
		s.dial(t, "GET "+streamPath+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	eventually(t, "streams do not begin", func() bool { return len(c.server.streams.list()) == 10 })
	reads := s.stream(t, "")
	reads.line(t)
	_ = reads.SetReadDeadline(time.Time{})
	var seen atomic.Int64
	go func() {
		for lines := bufio.NewScanner(reads.lines); lines.Scan(); {
			seen.Add(1)
		}
	}()
	flood(t, c, func() bool {
		eventually(t, "the reader is kept waiting", func() bool { return seen.Load() > int64(c.pods)-2000 })
		return len(c.server.streams.list()) == 1
	})
	if r, err := http.Get("http://" + s.address + batchPath + "?count=1"); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("others are not answered: %v", err)
	} else {
		_ = r.Body.Close()
	}
	eventually(t, "a stream counts as an answer", func() bool { return c.server.inFlight.free() })
}

// TestReadersAreClosedByTheLimitOnly shows that the limit is why the readers above are cut: a
// reader with a limit of an hour has the hour, whatever other limits there are, and not a
// second more.
func TestReadersAreClosedByTheLimitOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		s := servePiped(t, c, func(l *limits) { l.streamTime = time.Hour })
		s.dial(t, "GET "+streamPath+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		for range 10 {
			c.foreign(t, 1000)
			c.server.options.Events.Collect()
		}
		time.Sleep(time.Hour - time.Second)
		if len(c.server.streams.list()) != 1 {
			t.Error("a reader is cut for another reason than its slowness: the test above proves nothing")
		}
		time.Sleep(2 * time.Second)
		expect.Same(t, "a reader that does not read is not cut in its time", 0, len(c.server.streams.list()))
	})
}

// TestReadersThatAreOvertakenAreCut: their next record is not kept any more.
func TestReadersThatAreOvertakenAreCut(t *testing.T) {
	c := newCluster(t, "")
	c.server.options.Events = eventlog.New(c.store.Follow(output.Facts), 1000)
	s := serveCluster(t, c, quietly)
	stream := s.stream(t, "")
	stream.line(t)
	c.server.inFlight.enter() // it cannot write its next lines before all has happened
	for range 4 {
		c.foreign(t, 1000)
		c.server.options.Events.Collect()
	}
	c.server.inFlight.leave()
	_ = stream.SetReadDeadline(time.Now().Add(patient))
	rest, err := io.ReadAll(stream.lines) // it ends
	lines := strings.SplitAfter(string(rest), "\n")
	for i, line := range lines {
		if last := i == len(lines)-1; last && line != "" || !last && !json.Valid([]byte(line)) {
			t.Errorf("line %d is cut: %q", i, line)
		}
	}
	if err != nil || len(lines) > 1000 {
		t.Errorf("%v, after %d lines: it is not cut, or for another reason", err, len(lines))
	}
}
