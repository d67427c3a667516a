package rest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
)

// boundedListener keeps the open connections within the limits. A connection beyond the
// limit of its address is closed at once. If all places are taken, the new connection
// replaces the one that has had no request for longest.
type boundedListener struct {
	net.Listener
	limits limits

	mu     locks.Mutex // guards the rest, and the fields of the connections
	open   map[*boundedConn]struct{}
	byHost map[string]int
}

func bounded(listener net.Listener, l limits) *boundedListener {
	return &boundedListener{Listener: listener, limits: l, open: map[*boundedConn]struct{}{}, byHost: map[string]int{}}
}

// Accept returns the next connection that is within the limits.
func (b *boundedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(accepted.RemoteAddr().String())
		conn := &boundedConn{Conn: accepted, listener: b, host: host, known: loopback(host)}
		entered, gone := b.enter(conn, time.Now())
		if gone != nil {
			_ = gone.Conn.Close()
		}
		if entered {
			return conn, nil
		}
		_ = accepted.Close()
	}
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// enter adds a connection, and returns the one that it replaces; nil for none. It returns
// false if there is no place for the connection.
func (b *boundedListener) enter(conn *boundedConn, now time.Time) (entered bool, gone *boundedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byHost[conn.host] >= b.limits.perHost {
		return false, nil
	}
	if !b.room(conn) {
		if gone = b.longestIdle(); gone == nil {
			return false, nil
		}
		b.remove(gone)
	}
	conn.since = now
	b.open[conn] = struct{}{}
	b.byHost[conn.host]++
	return true, gone
}

// room tells whether there is a place for one more connection.
func (b *boundedListener) room(conn *boundedConn) bool {
	unknown := 0
	for other := range b.open {
		if !other.known {
			unknown++
		}
	}
	return len(b.open) < b.limits.connections && (conn.known || unknown < b.limits.connections-b.limits.reserved)
}

// longestIdle returns the replaceable connection that has had no request for longest; nil
// if there is none.
func (b *boundedListener) longestIdle() (longest *boundedConn) {
	for conn := range b.open {
		if conn.replaceable() && (longest == nil || conn.since.Before(longest.since)) {
			longest = conn
		}
	}
	return longest
}

// remove removes a connection. A second call does nothing.
func (b *boundedListener) remove(conn *boundedConn) {
	if _, open := b.open[conn]; !open {
		return
	}
	delete(b.open, conn)
	if b.byHost[conn.host]--; b.byHost[conn.host] == 0 {
		delete(b.byHost, conn.host)
	}
}

// boundedConn has a place among the open connections until it is closed. A known reader
// is one on this machine, which includes kubectl port-forward, or one that the guard
// admitted. Its connection may have a reserved place, and is not closed for others.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	host     string

	// The rest is guarded by the listener.
	known     bool
	answering int       // requests that are being answered
	since     time.Time // when it was opened, or the last request was answered
}

func (c *boundedConn) replaceable() bool { return !c.known && c.answering == 0 }

// Close closes the connection. It may be called again.
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// change has a function change the connection.
func (c *boundedConn) change(f func()) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	f()
}

type connKey struct{}

// withConn adds the connection to the context of its requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if bound, ok := conn.(*boundedConn); ok {
		return context.WithValue(ctx, connKey{}, bound)
	}
	return ctx
}

// setKnown records whether the guard knows the sender of a request. A connection from this
// machine is always that of a known reader.
func setKnown(ctx context.Context, known bool) {
	if conn, ok := ctx.Value(connKey{}).(*boundedConn); ok && !loopback(conn.host) {
		conn.change(func() { conn.known = known })
	}
}

// isKnown tells whether the request is one of a known reader.
func isKnown(ctx context.Context) (known bool) {
	if conn, ok := ctx.Value(connKey{}).(*boundedConn); ok {
		conn.change(func() { known = conn.known })
	}
	return known
}

// answering keeps the connection of a request open while the request is answered.
func answering(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(*boundedConn); ok {
			conn.change(func() { conn.answering++ })
			defer conn.change(func() { conn.answering, conn.since = conn.answering-1, time.Now() })
		}
		handler.ServeHTTP(w, r)
	})
}
