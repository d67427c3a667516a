package rest

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// limits bound what one reader, or all of them, can take.
type limits struct {
	// headerTime and readTime bound how long a request may take to arrive, writeTime
	// how long an answer may take to be read, idleTime how long a connection may be
	// kept without a request.
	headerTime, readTime, writeTime, idleTime time.Duration
	// headerBytes and bodyBytes bound a request; no document may be larger than a
	// configuration.
	headerBytes int
	bodyBytes   int64
	// drafts are the documents to validate that are in memory at a time: those that
	// arrive, and those that wait for their turn.
	drafts int32
	// connections are all that are open at a time, perHost those from one address.
	connections, perHost int
	// streams are all that are open at a time, streamsPerHost those of one address;
	// streamTime is how long a reader may take for the lines that are sent at once,
	// and streamAdmitted how long one that was admitted is not asked about again.
	streams, streamsPerHost    int
	streamTime, streamAdmitted time.Duration
}

func defaultLimits() limits {
	return limits{
		headerTime: 5 * time.Second, readTime: 10 * time.Second, writeTime: time.Minute, idleTime: time.Minute,
		headerBytes: 16 << 10, bodyBytes: config.MaxDocumentBytes, drafts: 4,
		connections: 256, perHost: 64,
		streams: 100, streamsPerHost: 15, streamTime: 10 * time.Second, streamAdmitted: 5 * time.Minute,
	}
}

func (l limits) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: l.headerTime, ReadTimeout: l.readTime, WriteTimeout: l.writeTime, IdleTimeout: l.idleTime,
		MaxHeaderBytes: l.headerBytes,
	}
}

// boundedListener closes connections over the limits at once, so that a client that wants
// many does not delay clients that have one.
type boundedListener struct {
	net.Listener
	limits limits

	mu     sync.Mutex // guards the rest
	open   int
	byHost map[string]int
}

func bounded(listener net.Listener, l limits) *boundedListener {
	return &boundedListener{Listener: listener, limits: l, byHost: map[string]int{}}
}

// Accept returns the next connection that is within the limits.
func (b *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(conn)
		if b.enter(host) {
			return &boundedConn{Conn: conn, leave: sync.OnceFunc(func() { b.leave(host) })}, nil
		}
		_ = conn.Close()
	}
}

func hostOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

func (b *boundedListener) enter(host string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= b.limits.connections || b.byHost[host] >= b.limits.perHost {
		return false
	}
	b.open++
	b.byHost[host]++
	return true
}

func (b *boundedListener) leave(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	if b.byHost[host]--; b.byHost[host] == 0 {
		delete(b.byHost, host)
	}
}

// boundedConn gives its place back when it is closed.
type boundedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection. It may be called again.
func (c *boundedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
