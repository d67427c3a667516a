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
)

// noise is text of so many bytes that does not become smaller.
func noise(size int) []byte {
	from := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(from.Uint32())
	}
	return out
}

// shelved is a page that counts how often it is made.
type shelved struct {
	*shelf
	clock *clocktesting.FakePassiveClock
	made  int
	page  http.HandlerFunc
}

func newShelved(page http.HandlerFunc) *shelved {
	c := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return &shelved{shelf: newShelf(c), clock: c, page: page}
}

func (s *shelved) ask(method, path, encoding string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	s.askBy(w, r)
	return w
}

func (s *shelved) askBy(w http.ResponseWriter, r *http.Request) {
	s.wrap(compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.made++
		s.page(w, r)
	}))).ServeHTTP(w, r)
}

func TestShelf(t *testing.T) {
	body := noise(100 << 10)
	s := newShelved(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
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
		if age := w.Header().Get("Age"); s.made != step.made || age != step.age {
			t.Errorf("%+v: made %d times by now, Age %q", step, s.made, age)
		}
		got, err := io.ReadAll(w.Body)
		if w.Header().Get("Content-Encoding") == "gzip" {
			unzip, err := gzip.NewReader(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if got, err = io.ReadAll(unzip); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil || !bytes.Equal(got, body) || w.Code != http.StatusOK {
			t.Errorf("%+v: %d, another body of %d bytes, %v", step, w.Code, len(got), err)
		}
	}
}

// leaver is a reader that goes away in the middle.
type leaver struct{ http.ResponseWriter }

func (leaver) Write(b []byte) (int, error) { return len(b) / 2, errors.New("gone") }

func TestNotKept(t *testing.T) {
	write := func(size int) http.HandlerFunc {
		page := noise(size)
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }
	}
	var s *shelved
	for name, ask := range map[string]func(){
		"a small one": func() { s.page = write(keepAbove / 2); s.ask("GET", "/", "gzip") },
		"POST":        func() { s.page = write(keepAbove * 2); s.ask("POST", "/", "gzip") },
		"HEAD":        func() { s.page = write(keepAbove * 2); s.ask("HEAD", "/", "gzip") },
		"one that failed": func() {
			s.page = func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				write(keepAbove*2)(w, r)
			}
			s.ask("GET", "/", "gzip")
		},
		"one that nobody took": func() {
			s.page = write(keepAbove * 2)
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", "gzip")
			s.askBy(leaver{httptest.NewRecorder()}, r)
		},
		"one whose time is over when it is sent": func() {
			s.page = func(w http.ResponseWriter, r *http.Request) {
				write(keepAbove*2)(w, r)
				s.clock.SetTime(s.clock.Now().Add(keepAtMost))
			}
			s.ask("GET", "/", "gzip")
		},
		"one larger than the shelf": func() { s.page = write(shelfSize + 1<<20); s.ask("GET", "/", "gzip") },
	} {
		t.Run(name, func(t *testing.T) {
			s = newShelved(nil)
			ask()
			if len(s.kept) != 0 || s.size != 0 || s.made != 1 {
				t.Errorf("%d pages of %d bytes are kept; %d made", len(s.kept), s.size, s.made)
			}
		})
	}
}

// TestNothingIsCopiedInVain: an answer that is not kept is in no memory as a whole.
func TestNothingIsCopiedInVain(t *testing.T) {
	for coding, copied := range map[string]bool{"": false, "gzip": true} {
		s := newShelved(nil)
		w := &copyingWriter{ResponseWriter: httptest.NewRecorder(), shelf: s.shelf, until: s.clock.Now().Add(keepAtMost)}
		w.Header().Set("Content-Encoding", coding)
		if _, err := w.Write(noise(keepAbove)); err != nil {
			t.Fatal(err)
		}
		if (s.copied > 0) != copied || (len(w.whole()) > 0) != copied {
			t.Errorf("coding %q: %d bytes of memory, %d to keep", coding, s.copied, len(w.whole()))
		}
	}
}

// TestCopiesAreBounded: readers that take their answers slowly, all at once, hold no
// more than the shelf has room for, and nothing when their time is over or they left.
func TestCopiesAreBounded(t *testing.T) {
	const readers, size = 16, shelfSize / 4
	s, page := newShelved(nil), noise(size)
	memory := func() (sum int) {
		for w := range s.copies {
			for _, bite := range w.copy {
				sum += cap(bite)
			}
		}
		return sum
	}
	var ask func(reader int)
	ask = func(reader int) {
		s.page = func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(page)
			if reader < readers { // the others come before this one has ended
				ask(reader + 1)
				return
			}
			if got := memory(); got != s.copied || got > shelfSize || got < shelfSize-size || len(s.copies) == readers {
				t.Errorf("%d readers hold %d bytes in %d copies, %d are counted", readers, got, len(s.copies), s.copied)
			}
			s.clock.SetTime(s.clock.Now().Add(keepAtMost))
			s.page = func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(page)
				if got := memory(); len(s.copies) != 1 || got != s.copied || got > size+2*copyBite {
					t.Errorf("when their time is over %d copies of %d bytes are left, %d are counted; want that of the new reader", len(s.copies), got, s.copied)
				}
			}
			s.ask("GET", "/late", "gzip")
		}
		s.ask("GET", fmt.Sprintf("/%d", reader), "gzip")
	}
	ask(1)
	if len(s.copies) != 0 || s.copied != 0 || len(s.kept) != 1 || s.size < size {
		t.Errorf("in the end there are %d copies of %d bytes, and %d answers of %d bytes are kept; want the last reader's", len(s.copies), s.copied, len(s.kept), s.size)
	}
}

func TestShelfIsBounded(t *testing.T) {
	page := noise(1 << 20)
	s := newShelved(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	for i := range 3 * shelfSize >> 20 {
		s.clock.SetTime(s.clock.Now().Add(time.Millisecond))
		s.ask("GET", fmt.Sprintf("/%d", i), "gzip")
		sum := 0
		for _, a := range s.kept {
			sum += len(a.body)
		}
		if s.size != sum || sum > shelfSize || sum < min(i, shelfSize>>20-1)<<20 {
			t.Fatalf("after %d: %d bytes are counted, %d kept", i+1, s.size, sum)
		}
		if _, there := s.kept[fmt.Sprintf("/%d\ngzip\n", i)]; !there {
			t.Errorf("the last of %d is not kept", i+1)
		}
	}
	s.clock.SetTime(s.clock.Now().Add(keepAtMost))
	s.ask("GET", "/other", "gzip")
	if len(s.kept) != 1 {
		t.Errorf("%d pages are kept, though the time of all but one is over", len(s.kept))
	}
}

// TestLargePagesAreKept: the pages of the server go through the shelf.
func TestLargePagesAreKept(t *testing.T) {
	document := "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n"
	for i := range 3000 {
		document += fmt.Sprintf("    - name: %x\n", sha256.Sum256([]byte(strconv.Itoa(i))))
	}
	c := newCluster(t, document)
	ask := func() (age, body string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, queuesPath, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		c.http.ServeHTTP(w, r)
		return w.Header().Get("Age"), w.Body.String()
	}
	// YAML and JSON are two answers, whoever asks first.
	for _, accept := range []string{"application/json", "", "application/json"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/ws/v1/config", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("Accept", accept)
		c.http.ServeHTTP(w, r)
		got := w.Header().Get("Content-Type")
		if asked := strings.Contains(got, "json"); asked != (accept != "") || w.Body.Len() < keepAbove {
			t.Errorf("who accepts %q gets %s, %d bytes", accept, got, w.Body.Len())
		}
	}
	age, first := ask()
	c.configure(t, "") // other queues
	if again, second := ask(); age != "" || again != "0" || second != first {
		t.Errorf("ages %q and %q; the second answer is the first: %v", age, again, second == first)
	}
	c.clock.Step(keepAtMost)
	if age, third := ask(); age != "" || third == first {
		t.Errorf("after that: age %q; it is the first answer: %v", age, third == first)
	}
}
