package rest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

const theirs, ours = "10.0.0.%d", "10.1.0.1"

// crowd has four clients open all the connections that they may, each with one request.
func (s served) crowd(t *testing.T, token string) {
	for i := range 256 {
		r := s.open(t, fmt.Sprintf(theirs, i%4))
		r.ask(token)
	}
}

// TestIdleConnectionsGiveTheirPlaces: clients that keep all places shut no other client out.
func TestIdleConnectionsGiveTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveCluster(t, newCluster(t, ""), quietly)
		s.crowd(t, "")
		for i := range 20 {
			time.Sleep(time.Millisecond)
			reader := s.open(t, ours)
			time.Sleep(time.Millisecond)
			// One without a request does not take the reader's place.
			s.open(t, fmt.Sprintf(theirs, i%4))
			expect.Same(t, fmt.Sprint("answer to reader ", i), http.StatusOK, reader.ask(""))
		}
	})
}

// TestIdleConnectionsAreKept: while there are places, an idle connection is kept.
func TestIdleConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveCluster(t, newCluster(t, ""), quietly)
		var all []reader
		for i := range 223 {
			all = append(all, s.open(t, fmt.Sprintf(theirs, i%4)))
			all[i].ask("")
		}
		time.Sleep(30 * time.Second)
		s.open(t, ours)
		synctest.Wait()
		for i, r := range all {
			expect.Same(t, fmt.Sprint("answer on ", i), http.StatusOK, r.ask(""))
		}
	})
}

// TestKnownReadersKeepTheirConnections: the connections of this machine and of readers that
// the guard admitted are not closed for those of others. The guard is told which are known.
func TestKnownReadersKeepTheirConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		var told []bool
		c.server.options.Guard = guardFunc(func(r *http.Request, known bool) error {
			told = append(told, known)
			if r.Header.Get("Authorization") != "Bearer mine" {
				return ErrUnknown
			}
			return nil
		})
		s := serveCluster(t, c, quietly)
		here, permitted, refused := s.open(t, "127.0.0.1"), s.open(t, ours), s.open(t, "10.2.0.1")
		here.ask("Bearer mine")
		expect.Same(t, "a reader with the right token", http.StatusOK, permitted.ask("Bearer mine"))
		expect.Same(t, "one with another token", http.StatusUnauthorized, refused.ask("Bearer other"))
		time.Sleep(time.Millisecond)
		s.crowd(t, "Bearer other")
		s.open(t, "10.2.0.1")
		synctest.Wait()
		expect.Same(t, "an admitted reader", http.StatusOK, permitted.ask("Bearer mine"))
		expect.Same(t, "a reader on this machine", http.StatusOK, here.ask("Bearer mine"))
		expect.Same(t, "a reader that was refused keeps its connection", 0, refused.ask("Bearer mine"))
		expect.Same(t, "known to the guard at first", []bool{true, false, false}, told[:3])
		expect.Same(t, "known to the guard in the end", []bool{true, true}, told[len(told)-2:])

		told = nil
		for _, token := range []string{"Bearer mine", "Bearer invented", "Bearer invented", "Bearer mine", "Bearer mine"} {
			permitted.ask(token)
			here.ask(token)
		}
		want := []bool{true, true, true, true, false, true, false, true, true, true}
		expect.Same(t, "known to the guard: elsewhere not after an unknown token, here always", want, told)
	})
}

type guardFunc func(r *http.Request, known bool) error

func (f guardFunc) Admit(r *http.Request, known bool) error { return f(r, known) }

// TestReservedPlaces: connections with a request keep their places, and the reserved places
// are left for known readers.
func TestReservedPlaces(t *testing.T) {
	b := bounded(nil, defaultLimits())
	now := time.Now()
	connect := func(address string) error {
		conn := &boundedConn{listener: b, host: address, known: loopback(address)}
		entered, gone := b.enter(conn, now)
		if gone != nil {
			return errors.New("others are closed")
		} else if !entered {
			return errors.New("refused")
		}
		conn.answering = 1
		return nil
	}
	ordinary := b.limits.connections - b.limits.reserved
	for i := range ordinary {
		expect.OK(t, connect(fmt.Sprintf(theirs, i%4)))
	}
	expect.That(t, connect(ours) != nil, "an ordinary reader has a reserved place")
	for range b.limits.reserved - 1 {
		expect.Holds(t, connect("::1"))
	}
	for conn := range b.open { // the guard admits one
		if conn.host == "10.0.0.0" {
			setKnown(withConn(t.Context(), conn), true)
			break
		}
	}
	expect.Holds(t, connect(ours)) // the place of a reader that was admitted
	expect.That(t, connect("::1") != nil && connect(ours) != nil && len(b.open) == b.limits.connections,
		"%d connections are open", len(b.open))
	for conn := range b.open {
		b.remove(conn)
		b.remove(conn)
	}
	expect.That(t, len(b.byHost) == 0, "after the last one: %v", b.byHost)
}

func TestReservedStreams(t *testing.T) {
	var s streams
	l := defaultLimits()
	enter := func(name string, known bool) bool { return s.enter(&EventStream{Name: name, known: known}, &l) }
	for i := range l.streams - l.reservedStreams {
		expect.That(t, enter(fmt.Sprint(i), false), "stream %d is refused", i)
	}
	expect.That(t, !enter("other", false), "an ordinary reader has a reserved stream")
	for i := range l.reservedStreams {
		expect.That(t, enter(fmt.Sprint("known", i), true), "reserved stream %d is refused", i)
	}
	expect.That(t, !enter("one more", true), "there are more streams than may be")
}

type streaming struct {
	net.Conn
	answer *http.Response
	lines  *bufio.Reader
}

func (s served) stream(t *testing.T, query string, headers ...string) streaming {
	t.Helper()
	lines := append([]string{"GET " + streamPath + query + " HTTP/1.1", "Host: localhost", "Accept-Encoding: gzip"}, headers...)
	conn := s.dial(t, strings.Join(lines, "\r\n")+"\r\n\r\n")
	answer, err := http.ReadResponse(conn.lines, nil) //nolint:bodyclose // it would wait for the end of the stream
	expect.OK(t, err)
	return streaming{conn, answer, bufio.NewReader(answer.Body)}
}

func (s streaming) line(t *testing.T) (out struct {
	InstanceUUID string
	ReferenceID  string
}) {
	t.Helper()
	expect.OK(t, json.Unmarshal(expect.Get(s.lines.ReadBytes('\n'))(t), &out))
	return out
}

// happen has pods of other schedulers come, and makes records of it.
func (c *cluster) happen(pods int) {
	c.foreign(pods)
	c.server.options.Events.Collect()
}

func TestEventStream(t *testing.T) { synctest.Test(t, eventStream) }

func eventStream(t *testing.T) {
	c := newCluster(t, "")
	s := serveCluster(t, c, quietly)
	c.foreign(3)
	stream := s.stream(t, "?count=2")
	expect.Same(t, "status", http.StatusOK, stream.answer.StatusCode)
	expect.Same(t, "type", "application/json; charset=UTF-8", stream.answer.Header.Get("Content-Type"))
	expect.Same(t, "encoding", "", stream.answer.Header.Get("Content-Encoding"))
	expect.Same(t, "instance", c.batch(t, "").InstanceUUID, stream.line(t).InstanceUUID)
	for _, want := range []string{"f2", "f3"} {
		expect.Same(t, "the next event is of", want, stream.line(t).ReferenceID)
	}
	time.Sleep(c.server.limits.readTime + c.server.limits.writeTime) // longer than any other request may take
	for range 3 {
		c.happen(1)
		expect.Same(t, "the next event is of", fmt.Sprint("f", c.foreigners), stream.line(t).ReferenceID)
	}
	news := s.stream(t, "")
	news.line(t)
	c.happen(1)
	expect.Same(t, "the first one without count, of what happens from now on", "f7", news.line(t).ReferenceID)
	for method, want := range map[string]int{http.MethodHead: http.StatusOK, http.MethodPost: http.StatusMethodNotAllowed, http.MethodOptions: http.StatusNoContent} {
		r, _ := c.do(method, streamPath)
		expect.Same(t, method, want, r.Code)
	}
	r, _ := c.do(http.MethodGet, streamPath+"?count=x")
	expect.Same(t, "count=x", http.StatusBadRequest, r.Code)
}

func TestStreamsAreBounded(t *testing.T) {
	for name, limit := range map[string]func(*limits){
		"all":      func(l *limits) { l.streams = 3 },
		"per host": func(l *limits) { l.streamsPerHost = 3 },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := serveCluster(t, newCluster(t, ""), limit)
			first := s.stream(t, "")
			for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusServiceUnavailable} {
				expect.Same(t, name+": one more", want, s.stream(t, "").answer.StatusCode)
			}
			_ = first.Close()
			synctest.Wait()
			expect.Same(t, name+": in place of the first", http.StatusOK, s.stream(t, "").answer.StatusCode)
		})
	}
}

func TestStreamsAreInTheDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		serveCluster(t, c, quietly).stream(t, "")
		served := newContract(t)
		served.check("dump", "dump", read[any](t, c, "/ws/v1/fullstatedump"))
		expect.That(t, served.served["stream.Name"] && served.served["stream.CreatedAt"], "%v", served.served)
		expect.That(t, len(served.wrong) == 0, "%q", served.wrong)
	})
}

// TestReadersThatDoNotReadAreCut: they hold up neither each other nor the store nor other
// requests. Each has the time of its limit, whatever other limits there are, and not more.
func TestReadersThatDoNotReadAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		s := serveCluster(t, c, func(l *limits) { l.streamTime = time.Hour })
		for range 10 {
			s.stream(t, "").line(t)
		}
		reads, seen := s.stream(t, ""), 0
		go func() {
			for lines := bufio.NewScanner(reads.lines); lines.Scan(); {
				seen++
			}
		}()
		for range 10 {
			c.happen(1000)
			synctest.Wait()
		}
		time.Sleep(time.Hour - time.Second)
		expect.Same(t, "lines of the one that reads, with the first", 10_001, seen)
		expect.Same(t, "streams in their time", 11, len(c.server.streams.list()))
		time.Sleep(2 * time.Second)
		expect.Same(t, "streams after that", 1, len(c.server.streams.list()))
		c.happen(1)
		synctest.Wait()
		expect.Same(t, "lines in the end", 10_002, seen)
		expect.Same(t, "an answer to others", http.StatusOK, s.open(t, ours).ask(""))
		most := int64(max(1, runtime.GOMAXPROCS(0)/4))
		expect.That(t, c.server.inFlight.TryAcquire(most), "a stream counts as an answer")
	})
}

// TestAllThatIsKeptCanBeStreamed: while more happens, and by a reader that is not at once there.
func TestAllThatIsKeptCanBeStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		c.server.options.Events = eventlog.New(c.Store.Follow(output.Facts), 1000)
		c.happen(1000)
		conn := serveCluster(t, c, quietly).dial(t, "GET "+streamPath+"?count=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait() // the first lines wait until they are read
		c.happen(10)
		answer, err := http.ReadResponse(conn.lines, nil) //nolint:bodyclose // it would wait for the end of the stream
		expect.OK(t, err)
		stream := streaming{conn, answer, bufio.NewReader(answer.Body)}
		stream.line(t)
		for i := range 1010 {
			expect.Same(t, "the next event is of", fmt.Sprint("f", i+1), stream.line(t).ReferenceID)
		}
	})
}

// TestReadersThatAreOvertakenAreCut: their next record is not kept any more.
func TestReadersThatAreOvertakenAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		c.server.options.Events = eventlog.New(c.Store.Follow(output.Facts), 1000)
		stream := serveCluster(t, c, quietly).stream(t, "")
		stream.line(t)
		for range 4 {
			c.happen(1000)
			synctest.Wait() // it waits until its lines are read
		}
		lines := strings.SplitAfter(string(expect.Get(io.ReadAll(stream.lines))(t)), "\n") // it ends
		for i, line := range lines {
			last := i == len(lines)-1
			expect.That(t, last && line == "" || !last && json.Valid([]byte(line)), "line %d is cut: %q", i, line)
		}
		expect.That(t, len(lines) <= 1000, "after %d lines: it is not cut", len(lines))
	})
}
