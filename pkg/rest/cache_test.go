package rest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// noise is text of so many bytes that does not become smaller.
func noise(size int) []byte {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(out)
	return out
}

func page(size int) http.HandlerFunc {
	body := noise(size)
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }
}

type counted struct {
	*pageCache
	clock *clocktesting.FakePassiveClock
	made  int
	page  http.HandlerFunc
}

func newCounted(page http.HandlerFunc) *counted {
	c := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return &counted{pageCache: newPageCache(c), clock: c, page: page}
}

func (s *counted) ask(method, path, encoding string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.askBy(w, method, path, encoding)
	return w
}

func (s *counted) askBy(w http.ResponseWriter, method, path, encoding string) {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	s.wrap(compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.made++
		s.page(w, r)
	}))).ServeHTTP(w, r)
}

func TestPageCache(t *testing.T) {
	body := noise(100 << 10)
	s := newCounted(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	for _, step := range []struct {
		after          time.Duration
		path, encoding string
		made           int
		age            string
	}{
		{0, "/a", "gzip", 1, ""},
		{2500 * time.Millisecond, "/a", "gzip", 1, "2"}, // 100 KiB last three seconds
		{0, "/a?x", "gzip", 2, ""},
		{0, "/a", "gzip, deflate, br, zstd", 3, ""}, // browsers
		{0, "/a", "gzip, deflate, br, zstd", 3, "0"},
		{0, "/a", "", 4, ""},
		{0, "/a", "", 5, ""}, // only what is compressed is kept
		{499 * time.Millisecond, "/a", "gzip", 5, "2"},
		{time.Millisecond, "/a", "gzip", 6, ""},
	} {
		s.clock.SetTime(s.clock.Now().Add(step.after))
		w := s.ask("GET", step.path, step.encoding)
		age := w.Header().Get("Age")
		expect.That(t, s.made == step.made && age == step.age, "%+v: made %d times, Age %q", step, s.made, age)
		got, err := io.ReadAll(w.Body)
		packed := w.Header().Get("Content-Encoding") == "gzip"
		expect.Same(t, "compressed if asked for", step.encoding != "", packed)
		if packed {
			unzip := expect.Get(gzip.NewReader(bytes.NewReader(got)))(t)
			got = expect.Get(io.ReadAll(unzip))(t)
		}
		expect.That(t, err == nil && bytes.Equal(got, body) && w.Code == http.StatusOK,
			"%+v: %d, another body of %d bytes, %v", step, w.Code, len(got), err)
	}
}

type leaver struct{ http.ResponseWriter }

func (leaver) Write(b []byte) (int, error) { return len(b) / 2, errors.New("gone") }

func TestNotKept(t *testing.T) {
	var s *counted
	for name, ask := range map[string]func(){
		"a small one": func() { s.page = page(keepAbove / 2); s.ask("GET", "/", "gzip") },
		"POST":        func() { s.page = page(keepAbove * 2); s.ask("POST", "/", "gzip") },
		"HEAD":        func() { s.page = page(keepAbove * 2); s.ask("HEAD", "/", "gzip") },
		"one that failed": func() {
			s.page = func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				page(keepAbove*2)(w, r)
			}
			s.ask("GET", "/", "gzip")
		},
		"one that no reader took": func() {
			s.page = page(keepAbove * 2)
			s.askBy(leaver{httptest.NewRecorder()}, "GET", "/", "gzip")
		},
		"one whose time is over when it is sent": func() {
			s.page = func(w http.ResponseWriter, r *http.Request) {
				page(keepAbove*2)(w, r)
				s.clock.SetTime(s.clock.Now().Add(keepAtMost))
			}
			s.ask("GET", "/", "gzip")
		},
		"one that is too large": func() { s.page = page(cacheSize + 1<<20); s.ask("GET", "/", "gzip") },
	} {
		s = newCounted(nil)
		ask()
		expect.That(t, len(s.pages) == 0 && s.copier == nil && s.size == 0 && s.made == 1,
			"%s: %d pages of %d bytes are kept; %d made", name, len(s.pages), s.size, s.made)
	}
}

// TestOneCopyAtATime: beside an answer that is copied no other is, however many readers
// there are, until the reader takes longer than anything is kept.
func TestOneCopyAtATime(t *testing.T) {
	s, twice := newCounted(nil), page(keepAbove*2)
	s.page = func(w http.ResponseWriter, r *http.Request) {
		twice(w, r)
		slow := s.copier
		s.page = twice
		s.ask("GET", "/beside", "gzip")
		expect.That(t, s.copier == slow && len(s.copy) > 0 && len(s.pages) == 0, "the copy is another one")
		s.clock.SetTime(s.clock.Now().Add(keepAtMost))
		s.ask("GET", "/late", "gzip")
		expect.That(t, s.copier == nil && s.copy == nil && len(s.pages) == 1, "the late one is not kept alone")
	}
	s.ask("GET", "/slow", "gzip")
	expect.Same(t, "pages that are kept, that of /late", 1, len(s.pages))
}

func TestPageCacheIsBounded(t *testing.T) {
	s := newCounted(page(1 << 20))
	for i := range 3 * cacheSize >> 20 {
		s.ask("GET", fmt.Sprintf("/%d", i), "gzip")
		sum := 0
		for _, kept := range s.pages {
			sum += len(kept.body)
		}
		_, there := s.pages[fmt.Sprintf("/%d\ngzip\n", i)]
		expect.That(t, s.size == sum && sum <= cacheSize && there,
			"after %d: %d bytes are counted, %d kept; the last one: %t", i+1, s.size, sum, there)
	}
	s.clock.SetTime(s.clock.Now().Add(keepAtMost))
	s.ask("GET", "/other", "gzip")
	expect.Same(t, "pages that are kept once the time of all but one is over", 1, len(s.pages))
}

// TestLargePagesAreKept: the pages of the server go through the cache.
func TestLargePagesAreKept(t *testing.T) {
	document := "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n"
	for i := range 3000 {
		document += fmt.Sprintf("    - name: %x\n", sha256.Sum256([]byte(strconv.Itoa(i))))
	}
	c := newCluster(t, document)
	asGzip := func(path, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("Accept", accept)
		return c.ask(r)
	}
	// YAML and JSON are two answers, in either order of requests.
	for _, accept := range []string{"application/json", "", "application/json"} {
		w := asGzip("/ws/v1/config", accept)
		got := w.Header().Get("Content-Type")
		expect.That(t, strings.Contains(got, "json") == (accept != "") && w.Body.Len() >= keepAbove,
			"a client that accepts %q gets %s, %d bytes", accept, got, w.Body.Len())
	}
	first := asGzip(queuesPath, "").Body.String()
	c.Configure("") // other queues
	for _, want := range []struct {
		age  string
		kept bool
	}{{"0", true}, {"", false}} {
		w := asGzip(queuesPath, "")
		expect.Same(t, "age", want.age, w.Header().Get("Age"))
		expect.Same(t, "it is the first answer", want.kept, w.Body.String() == first)
		c.Clock.Step(keepAtMost)
	}
	short := asGzip("/ws/v1/history/apps", "")
	expect.Same(t, "encoding of a short answer", "", short.Header().Get("Content-Encoding"))
}
