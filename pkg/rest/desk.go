package rest

import (
	"context"
	"io"
	"net/http"
	"runtime"
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
// the desk, so a reader that reads slowly, or not at all, keeps nobody from it.
type desk struct{ seats chan struct{} }

func newDesk() *desk {
	return &desk{seats: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))}
}

func (d *desk) sit()   { d.seats <- struct{}{} }
func (d *desk) stand() { <-d.seats }

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
		defer d.stand()
		r = r.Clone(r.Context())
		r.Body = &absentReader{ReadCloser: r.Body, desk: d}
		handler.ServeHTTP(&absentWriter{ResponseWriter: w, desk: d}, r)
	})
}

// absentWriter leaves the desk while it writes to the network.
type absentWriter struct {
	http.ResponseWriter
	desk *desk
}

func (w *absentWriter) Write(b []byte) (int, error) {
	w.desk.stand()
	defer w.desk.sit()
	return w.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (w *absentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// absentReader leaves the desk while it reads from the network.
type absentReader struct {
	io.ReadCloser
	desk *desk
}

func (r *absentReader) Read(b []byte) (int, error) {
	r.desk.stand()
	defer r.desk.sit()
	return r.ReadCloser.Read(b)
}

// compressed compresses answers for who accepts that.
func compressed(handler http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(compressAbove), gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		panic("rest: options of gzhttp: " + err.Error()) // they are constants
	}
	return wrap(handler)
}
