package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
	"golang.org/x/sync/semaphore"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

const (
	// compressAbove is the size in bytes from which an answer is compressed, as YuniKorn has it.
	compressAbove = 1400
	// patience is how long a request waits for its turn.
	patience = 10 * time.Second
)

// inFlight bounds how many answers are made at a time, so that cores are left for the
// scheduler. A request that waits for the network, in either direction, does not
// count, so a reader that reads slowly holds up no other reader.
type inFlight struct{ *semaphore.Weighted }

func (f inFlight) enter() { _ = f.Acquire(context.Background(), 1) } // fails only with its context
func (f inFlight) leave() { f.Release(1) }

// wrap has the handler make its answers within the bound.
func (f inFlight) wrap(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !acquire(r.Context(), f.Weighted) {
			documents.Busy(w, "Too many requests", "others are being answered; try again in a moment")
			return
		}
		defer f.leave()
		handler.ServeHTTP(&absentWriter{ResponseWriter: w, inFlight: f}, r)
	})
}

// away does something for a request that does not count as making its answer.
func (f inFlight) away(do func()) {
	f.leave()
	defer f.enter()
	do()
}

// acquire waits for a turn, for no longer than patience.
func acquire(ctx context.Context, s *semaphore.Weighted) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Acquire(ctx, 1) == nil
}

// inTurn does some work once it is its turn, and does not count as an answer meanwhile. It
// returns false if the turn did not come.
func (f inFlight) inTurn(ctx context.Context, s *semaphore.Weighted, work func()) (ok bool) {
	f.away(func() {
		if ok = acquire(ctx, s); ok {
			defer s.Release(1)
			work()
		}
	})
	return ok
}

// absentWriter does not count while it writes to the network.
type absentWriter struct {
	http.ResponseWriter
	inFlight inFlight
}

func (w *absentWriter) Write(b []byte) (n int, err error) {
	w.inFlight.away(func() { n, err = w.ResponseWriter.Write(b) })
	return n, err
}

// Unwrap serves http.ResponseController.
func (w *absentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// compressed compresses answers for clients that accept gzip. There is no other coding,
// although browsers prefer others.
func compressed(handler http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(compressAbove), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	if err != nil {
		panic("rest: options of gzhttp: " + err.Error()) // they are constants
	}
	return wrap(handler)
}
