package rest

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// keepAbove is the size in bytes, as it is sent, from which an answer is kept.
	keepAbove = 32 << 10
	// keepPerKiB is how long an answer is given again for each KiB of it, and
	// keepAtMost bounds that. Making a KiB takes about 0.1 ms, so a page is made for
	// one part in 300 of the time, one of a very large cluster for one in 80.
	keepPerKiB = 30 * time.Millisecond
	keepAtMost = 5 * time.Second
	// shelfSize bounds what is kept of all answers, in bytes, and once more what is
	// copied of those that are being sent.
	shelfSize = 8 << 20
	// copyBite is by how much a copy grows.
	copyBite = keepAbove
)

// shelf keeps large answers for a moment, compressed as they were sent. Those of a
// large cluster are dear, and readers come by the clock, not all at once: however many
// there are, they cost what one does. What counts is the size and not how long it took
// to make, so that a busy machine does not make pages stale, and a small cluster's
// never are. An answer that was kept says how old it is, in seconds (header Age).
// Nobody waits for another reader's answer, who may be a slow one.
//
//	made, large, compressed          its time is over, or others need the room
//	─────────────────────────► kept ──────────────────────────────────────────► gone
type shelf struct {
	clock clock.PassiveClock

	mu   sync.Mutex // guards what is kept; nothing is called while it is held
	kept map[string]*keptAnswer
	size int
	// copies are those under way, and copied is their memory.
	copies map[*copyingWriter]bool
	copied int
}

// keptAnswer is never changed once it is on the shelf.
type keptAnswer struct {
	key          string
	header       http.Header
	body         []byte
	began, until time.Time
}

func newShelf(c clock.PassiveClock) *shelf {
	return &shelf{clock: c, kept: map[string]*keptAnswer{}, copies: map[*copyingWriter]bool{}}
}

// wrap answers from the shelf where it can. Otherwise the handler answers, which
// compresses.
func (s *shelf) wrap(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			handler.ServeHTTP(w, r)
			return
		}
		key, now := pageAsked(r), s.clock.Now()
		if a := s.find(key, now); a != nil {
			a.send(w, now)
			return
		}
		copied := &copyingWriter{ResponseWriter: w, shelf: s, until: now.Add(keepAtMost)}
		defer s.spoil(copied) // however the handler ends
		handler.ServeHTTP(copied, r)
		if body := copied.whole(); len(body) >= keepAbove {
			lasts := min(time.Duration(len(body)>>10)*keepPerKiB, keepAtMost)
			s.keep(&keptAnswer{key: key, header: w.Header().Clone(), body: body, began: now, until: now.Add(lasts)}, s.clock.Now())
		}
	})
}

// pageAsked is the page and all that an answer may depend on: the headers that are
// named in some answer's Vary.
func pageAsked(r *http.Request) string {
	return r.URL.RequestURI() + "\n" + strings.Join(r.Header.Values("Accept-Encoding"), ",") + "\n" + strings.Join(r.Header.Values("Accept"), ",")
}

// find returns what is kept of a page; nil if nothing is, or is too old.
func (s *shelf) find(key string, now time.Time) *keptAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear(now)
	return s.kept[key]
}

// keep puts an answer on the shelf, unless its time is over already: who reads
// slowly made it slow.
func (s *shelf) keep(a *keptAnswer, now time.Time) {
	if !a.until.After(now) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear(now)
	s.remove(a.key)
	for s.size+len(a.body) > shelfSize {
		s.remove(s.oldest())
	}
	s.kept[a.key] = a
	s.size += len(a.body)
}

// clear removes what is too old.
func (s *shelf) clear(now time.Time) {
	for key, a := range s.kept {
		if !a.until.After(now) {
			s.remove(key)
		}
	}
}

func (s *shelf) remove(key string) {
	if a, there := s.kept[key]; there {
		delete(s.kept, key)
		s.size -= len(a.body)
	}
}

// oldest is the page that was made first, of those made at once the first by name.
func (s *shelf) oldest() string {
	var first *keptAnswer
	for _, a := range s.kept {
		if first == nil || a.began.Before(first.began) || a.began.Equal(first.began) && a.key < first.key {
			first = a
		}
	}
	return first.key
}

func (a *keptAnswer) send(w http.ResponseWriter, now time.Time) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Age", strconv.Itoa(int(max(now.Sub(a.began), 0)/time.Second)))
	_, _ = w.Write(a.body) // a reader that is gone is no error of ours
}

// copy adds to a copy under way, or drops it where there is no room or it is too late.
func (s *shelf) copy(w *copyingWriter, b []byte, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(b) > 0 && !w.spoilt {
		last := len(w.copy) - 1
		if last < 0 || len(w.copy[last]) == copyBite {
			if s.dropLate(now); w.spoilt || s.copied+copyBite > shelfSize {
				s.drop(w)
				return
			}
			w.copy, s.copied, s.copies[w] = append(w.copy, make([]byte, 0, copyBite)), s.copied+copyBite, true
			last++
		}
		n := min(len(b), copyBite-len(w.copy[last]))
		w.copy[last] = append(w.copy[last], b[:n]...)
		b = b[n:]
	}
}

// dropLate drops the copies whose time is over, as those of readers that are stuck. The
// caller holds mu.
func (s *shelf) dropLate(now time.Time) {
	for other := range s.copies {
		if !now.Before(other.until) {
			s.drop(other)
		}
	}
}

// spoil gives up a copy.
func (s *shelf) spoil(w *copyingWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(w)
}

// drop is spoil; the caller holds mu.
func (s *shelf) drop(w *copyingWriter) {
	s.copied -= len(w.copy) * copyBite
	w.spoilt, w.copy = true, nil
	delete(s.copies, w)
}

// copyingWriter keeps a copy of what is sent, as long as that may go on the shelf: a
// reader who takes longer than anything is kept, or for whose copy there is no room
// beside those of others, costs none.
type copyingWriter struct {
	http.ResponseWriter
	shelf  *shelf
	until  time.Time // later than that it is not kept
	status int       // zero before there is one

	// The shelf's mu guards the rest.
	copy   [][]byte // of copyBite each, the last up to that
	spoilt bool     // not sent as a whole, too late, or too large
}

// whole is the body of an answer that was sent as a whole and compressed; nil for
// any other.
func (w *copyingWriter) whole() []byte {
	w.shelf.mu.Lock()
	defer w.shelf.mu.Unlock()
	if w.spoilt || !w.keepable() {
		return nil
	}
	return bytes.Join(w.copy, nil)
}

// keepable tells whether an answer is of those that are kept; no other is copied.
func (w *copyingWriter) keepable() bool {
	return w.status == http.StatusOK && w.Header().Get("Content-Encoding") == "gzip"
}

func (w *copyingWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *copyingWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	if err != nil || !w.keepable() {
		w.shelf.spoil(w)
	} else {
		w.shelf.copy(w, b[:n], w.shelf.clock.Now())
	}
	return n, err
}

// Unwrap serves http.ResponseController.
func (w *copyingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
