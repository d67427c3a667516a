package rest

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
)

const (
	// keepAbove is the size in bytes, as it is sent, from which an answer is kept.
	keepAbove = 32 << 10
	// keepPerKiB is how long an answer is kept for each KiB of it, at most keepAtMost.
	// Making a KiB takes about 0.2 ms, so a page that is always asked for is made during
	// 1/150 of the time, a page of a very large cluster during 1/40.
	keepPerKiB = 30 * time.Millisecond
	keepAtMost = 5 * time.Second
	// cacheSize bounds the size of all kept answers, and of the copy of one, in bytes.
	cacheSize = 8 << 20
)

// pageCache keeps large answers for a moment, compressed as they were sent, so that many
// readers cost as much as one. The time depends on the size of the answer and not on how
// long it took to make, so pages of a small cluster are never stale, even on a busy machine.
// The header Age of a cached answer is its age in seconds.
type pageCache struct {
	clock clock.PassiveClock

	mu    locks.Mutex // guards the rest; nothing is called while it is held
	pages map[string]*keptPage
	size  int
	// copier is the only answer that is copied while it is sent; copy is what it has sent
	// so far. After keepAtMost another answer may replace it, so slow readers hold no
	// memory.
	copier *copyingWriter
	copy   []byte
}

// keptPage is an answer in the cache. Immutable.
type keptPage struct {
	header       http.Header
	body         []byte
	began, until time.Time
}

func newPageCache(c clock.PassiveClock) *pageCache {
	return &pageCache{clock: c, pages: map[string]*keptPage{}}
}

// wrap answers from the cache if it can. Otherwise the handler answers; it compresses.
func (p *pageCache) wrap(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			handler.ServeHTTP(w, r)
			return
		}
		key, now := pageAsked(r), p.clock.Now()
		c := &copyingWriter{ResponseWriter: w, cache: p, began: now}
		if kept := p.find(c, key); kept != nil {
			maps.Copy(w.Header(), kept.header)
			w.Header().Set("Age", strconv.Itoa(int(max(now.Sub(kept.began), 0)/time.Second)))
			_, _ = w.Write(kept.body) // a reader that is gone is no error of ours
			return
		}
		defer p.drop(c) // also after a panic
		handler.ServeHTTP(c, r)
		p.keep(c, key)
	})
}

// pageAsked is the key of a page: its address, and the headers that answers name in Vary.
func pageAsked(r *http.Request) string {
	return r.URL.RequestURI() + "\n" + strings.Join(r.Header.Values("Accept-Encoding"), ",") + "\n" + strings.Join(r.Header.Values("Accept"), ",")
}

// find returns the cached page; nil if there is none. In that case it starts to copy the
// answer, unless another answer is being copied.
func (p *pageCache) find(c *copyingWriter, key string) *keptPage {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, kept := range p.pages {
		if !kept.until.After(c.began) {
			delete(p.pages, key)
			p.size -= len(kept.body)
		}
	}
	kept := p.pages[key]
	if kept == nil && (p.copier == nil || c.began.Sub(p.copier.began) >= keepAtMost) {
		p.copier, p.copy = c, nil
	}
	return kept
}

// add copies what was sent.
func (p *pageCache) add(c *copyingWriter, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.copier != c:
	case len(p.copy)+len(b) > cacheSize:
		p.copier, p.copy = nil, nil
	default:
		p.copy = append(p.copy, b...)
	}
}

// drop ends the copy of an answer, if there is one.
func (p *pageCache) drop(c *copyingWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.copier == c {
		p.copier, p.copy = nil, nil
	}
}

// keep adds an answer that was copied completely, unless it is small or its time is over.
// If there is no room for it, all other answers are removed.
func (p *pageCache) keep(c *copyingWriter, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := c.began.Add(min(time.Duration(len(p.copy)>>10)*keepPerKiB, keepAtMost))
	if p.copier != c || len(p.copy) < keepAbove || !until.After(p.clock.Now()) {
		return
	}
	if p.size+len(p.copy) > cacheSize {
		clear(p.pages)
		p.size = 0
	}
	if old := p.pages[key]; old != nil {
		p.size -= len(old.body)
	}
	p.pages[key] = &keptPage{header: c.Header().Clone(), body: p.copy, began: c.began, until: until}
	p.size += len(p.copy)
}

// copyingWriter copies what it sends if the answer is compressed and not an error.
type copyingWriter struct {
	http.ResponseWriter
	cache  *pageCache
	began  time.Time
	status int // zero before it is known
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
	if err != nil || w.status != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" {
		w.cache.drop(w)
	} else {
		w.cache.add(w, b)
	}
	return n, err
}

// Unwrap serves http.ResponseController.
func (w *copyingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
