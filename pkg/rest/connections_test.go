package rest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// from is a connection from an address.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1}
}

// reader is one connection of a client.
type reader struct {
	net.Conn
	lines *bufio.Reader
}

// ask returns the status of the answer; 0 for none.
func (r reader) ask(token string) int {
	if _, err := io.WriteString(r, "GET /ws/v1/clusters HTTP/1.1\r\nHost: localhost\r\nAuthorization: "+token+"\r\n\r\n"); err != nil {
		return 0
	}
	answer, err := http.ReadResponse(r.lines, nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// serveFrom serves in memory, to clients at addresses.
func serveFrom(t *testing.T, c *cluster) (open func(address string) reader) {
	t.Helper()
	p := newPipes()
	served{cluster: c}.serve(t, p)
	return func(address string) reader {
		near, far := net.Pipe()
		p.opened <- from{far, address}
		t.Cleanup(func() { _ = near.Close() })
		return reader{near, bufio.NewReader(near)}
	}
}

const theirs, ours = "10.0.0.%d", "10.1.0.1"

// crowded has four clients open all the connections that they may, each with one request.
func crowded(open func(string) reader, token string) (all []reader) {
	for i := range 256 {
		r := open(fmt.Sprintf(theirs, i%4))
		r.ask(token)
		all = append(all, r)
	}
	return all
}

// TestIdleConnectionsGiveTheirPlaces: clients that keep all places shut no other client out.
func TestIdleConnectionsGiveTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := serveFrom(t, newCluster(t, ""))
		all := crowded(open, "")
		for i := range 20 {
			time.Sleep(time.Millisecond)
			reader := open(ours)
			time.Sleep(time.Millisecond)
			all = append(all, open(fmt.Sprintf(theirs, i%4))) // without a request; it does not take the reader's place
			expect.Same(t, fmt.Sprint("answer to reader ", i), http.StatusOK, reader.ask(""))
		}
		time.Sleep(defaultLimits().crowdedIdle)
		open(ours)
		synctest.Wait()
		for i, r := range all {
			if r.ask("") != 0 {
				t.Fatalf("connection %d is kept although more than half are open", i)
			}
		}
	})
}

// TestFewIdleConnectionsAreKept: below half of the places an idle connection is kept.
func TestFewIdleConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := serveFrom(t, newCluster(t, ""))
		var all []reader
		for i := range 127 {
			all = append(all, open(fmt.Sprintf(theirs, i%4)))
			all[i].ask("")
		}
		time.Sleep(defaultLimits().crowdedIdle)
		open(ours)
		synctest.Wait()
		for i, r := range all {
			if r.ask("") != http.StatusOK {
				t.Fatalf("connection %d is closed", i)
			}
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
		open := serveFrom(t, c)
		here, permitted, refused := open("127.0.0.1"), open(ours), open("10.2.0.1")
		here.ask("Bearer mine")
		if permitted.ask("Bearer mine") != http.StatusOK || refused.ask("Bearer other") != http.StatusUnauthorized {
			t.Fatal("the guard does not decide")
		}
		crowded(open, "Bearer other")
		time.Sleep(defaultLimits().crowdedIdle)
		open("10.2.0.1")
		synctest.Wait()
		expect.Same(t, "an admitted reader", http.StatusOK, permitted.ask("Bearer mine"))
		expect.Same(t, "a reader on this machine", http.StatusOK, here.ask("Bearer mine"))
		expect.Same(t, "a reader that was refused keeps its connection", 0, refused.ask("Bearer mine"))
		first, last := told[:3], told[len(told)-2:]
		if !slices.Equal(first, []bool{true, false, false}) || !slices.Equal(last, []bool{true, true}) {
			t.Errorf("known to the guard at first: %v, in the end: %v", first, last)
		}

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
		if len(gone) > 0 {
			return errors.New("others are closed")
		} else if !entered {
			return errors.New("refused")
		}
		conn.answering = 1
		return nil
	}
	ordinary := b.limits.connections - b.limits.reserved
	for i := range ordinary {
		if err := connect(fmt.Sprintf(theirs, i%4)); err != nil {
			t.Fatal(i, err)
		}
	}
	if connect(ours) == nil {
		t.Error("an ordinary reader has a reserved place")
	}
	for i := range b.limits.reserved - 1 {
		if err := connect("::1"); err != nil {
			t.Errorf("reserved place %d: %v", i, err)
		}
	}
	for conn := range b.open { // the guard admits one
		if conn.host == "10.0.0.0" {
			setKnown(withConn(t.Context(), conn), true)
			break
		}
	}
	if err := connect(ours); err != nil {
		t.Errorf("the place of a reader that was admitted: %v", err)
	}
	if connect("::1") == nil || connect(ours) == nil || len(b.open) != b.limits.connections {
		t.Errorf("%d connections are open", len(b.open))
	}
	for conn := range b.open {
		b.remove(conn)
		b.remove(conn)
	}
	if len(b.byHost) > 0 {
		t.Errorf("after the last one: %v", b.byHost)
	}
}

// TestReservedStreams: the last streams are for known readers.
func TestReservedStreams(t *testing.T) {
	var s streams
	l := defaultLimits()
	enter := func(name string, known bool) bool { return s.enter(&EventStream{Name: name, known: known}, &l) }
	for i := range l.streams - l.reservedStreams {
		if !enter(fmt.Sprint(i), false) {
			t.Fatal(i)
		}
	}
	if enter("other", false) {
		t.Error("an ordinary reader has a reserved stream")
	}
	for i := range l.reservedStreams {
		if !enter(fmt.Sprint("known", i), true) {
			t.Errorf("reserved stream %d is refused", i)
		}
	}
	if enter("one more", true) {
		t.Error("there are more streams than may be")
	}
}
