package rest

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

const theirs, ours = "10.0.0.%d", "10.1.0.1"

// crowd has four clients open all the connections that they may, each with one request.
func (s served) crowd(t *testing.T, token string) (all []reader) {
	for i := range 256 {
		r := s.open(t, fmt.Sprintf(theirs, i%4))
		r.ask(token)
		all = append(all, r)
	}
	return all
}

// TestIdleConnectionsGiveTheirPlaces: clients that keep all places shut no other client out.
func TestIdleConnectionsGiveTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveCluster(t, newCluster(t, ""), quietly)
		all := s.crowd(t, "")
		for i := range 20 {
			time.Sleep(time.Millisecond)
			reader := s.open(t, ours)
			time.Sleep(time.Millisecond)
			// One without a request does not take the reader's place.
			all = append(all, s.open(t, fmt.Sprintf(theirs, i%4)))
			expect.Same(t, fmt.Sprint("answer to reader ", i), http.StatusOK, reader.ask(""))
		}
		time.Sleep(defaultLimits().crowdedIdle)
		s.open(t, ours)
		synctest.Wait()
		for i, r := range all {
			expect.Same(t, fmt.Sprint("answer on ", i, " while more than half are open"), 0, r.ask(""))
		}
	})
}

// TestFewIdleConnectionsAreKept: below half of the places an idle connection is kept.
func TestFewIdleConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveCluster(t, newCluster(t, ""), quietly)
		var all []reader
		for i := range 127 {
			all = append(all, s.open(t, fmt.Sprintf(theirs, i%4)))
			all[i].ask("")
		}
		time.Sleep(defaultLimits().crowdedIdle)
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
		s.crowd(t, "Bearer other")
		time.Sleep(defaultLimits().crowdedIdle)
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

// TestReservedStreams: the last streams are for known readers.
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
