package rest

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

const (
	// compressAbove is the size in bytes from which an answer is compressed, as YuniKorn has it.
	compressAbove = 1400
	// patience is how long a request waits for its turn.
	patience = 10 * time.Second
)

// desk is where answers are made: at a time by so many that the cores are not
// all busy with it. Whoever waits for the network, in either direction, is not at
// the desk, so a reader that reads slowly, or not at all, keeps nobody from it. And
// for as long as there was work at a seat it stays empty afterwards, so readers that
// ask without pause have half of the time of a seat.
type desk struct {
	seats chan struct{}

	mu   sync.Mutex // guards owed; nothing is called while it is held
	owed time.Duration
}

const (
	// leastWork is what any request is taken for: the network needs as much.
	leastWork = 200 * time.Microsecond
	// shortestRest is from which on a seat rests; until then it owes that. No rest is
	// longer than longestSeatRest: work is taken by the clock, and a machine may stall.
	shortestRest    = 5 * time.Millisecond
	longestSeatRest = 3 * time.Second
)

func newDesk() *desk {
	return &desk{seats: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))}
}

func (d *desk) sit()   { d.seats <- struct{}{} }
func (d *desk) stand() { <-d.seats }

// leave gives a seat free for the next one, when it has rested for what was done.
func (d *desk) leave(worked time.Duration) {
	d.mu.Lock()
	d.owed += max(worked, leastWork)
	rest := d.owed
	if rest >= shortestRest {
		d.owed = 0
	}
	d.mu.Unlock()
	if rest < shortestRest {
		d.stand()
		return
	}
	time.AfterFunc(min(rest, longestSeatRest), d.stand)
}

// work does something short at the desk.
func (d *desk) work(do func()) {
	d.sit()
	began := time.Now()
	defer func() { d.leave(time.Since(began)) }()
	do()
}

// sitWithin waits for a seat; false if there was none in time.
func (d *desk) sitWithin(ctx context.Context, wait time.Duration) bool {
	select {
	case d.seats <- struct{}{}:
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case d.seats <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// wrap has the handler make its answers at the desk.
func (d *desk) wrap(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.sitWithin(r.Context(), patience) {
			w.Header().Set("Retry-After", "10")
			problem(w, http.StatusServiceUnavailable, "Too many requests", "others are being answered; try again in a moment")
			return
		}
		v := &visit{desk: d, since: time.Now()}
		defer func() { d.leave(v.worked + time.Since(v.since)) }()
		r = r.Clone(context.WithValue(r.Context(), visitKey{}, v))
		r.Body = &absentReader{ReadCloser: r.Body, visit: v}
		handler.ServeHTTP(&absentWriter{ResponseWriter: w, visit: v}, r)
	})
}

// visit is one request at the desk. Only the goroutine of that uses it.
type visit struct {
	desk   *desk
	since  time.Time // when it sat down
	worked time.Duration
}

type visitKey struct{}

// away does something that keeps nobody from the desk.
func (v *visit) away(do func()) {
	v.worked += time.Since(v.since)
	v.desk.stand()
	defer func() {
		v.desk.sit()
		v.since = time.Now()
	}()
	do()
}

// away does something for a request that keeps nobody from the desk; a request that
// is not made at the desk just does it.
func away(ctx context.Context, do func()) {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.away(do)
		return
	}
	do()
}

// absentWriter leaves the desk while it writes to the network.
type absentWriter struct {
	http.ResponseWriter
	visit *visit
}

func (w *absentWriter) Write(b []byte) (n int, err error) {
	w.visit.away(func() { n, err = w.ResponseWriter.Write(b) })
	return n, err
}

// Unwrap serves http.ResponseController.
func (w *absentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// absentReader leaves the desk while it reads from the network.
type absentReader struct {
	io.ReadCloser
	visit *visit
}

func (r *absentReader) Read(b []byte) (n int, err error) {
	r.visit.away(func() { n, err = r.ReadCloser.Read(b) })
	return n, err
}

// compressed compresses answers for who accepts gzip. Only that: browsers would like
// other codings more, and large answers are kept in one.
func compressed(handler http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(compressAbove), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	if err != nil {
		panic("rest: options of gzhttp: " + err.Error()) // they are constants
	}
	return wrap(handler)
}
