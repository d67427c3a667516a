package rest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fickle says what it was told to say last of who sends a token, which it takes out of
// the request, as the API server's own authenticator does.
type fickle struct {
	mu    sync.Mutex
	says  error
	asked int
}

func (f *fickle) Admit(r *http.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if r.Header.Get("Authorization") != "Bearer mine" {
		return errors.New("who is asked about sends no token")
	}
	r.Header.Del("Authorization")
	return f.says
}

func (f *fickle) say(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.says = err
}

func (f *fickle) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// TestAStreamEndsWithThePermission: it is asked about again, an outage ends nothing,
// and who may not read any more is told so in the last line.
func TestAStreamEndsWithThePermission(t *testing.T) {
	for _, why := range []error{ErrUnknown, ErrForbidden} {
		synctest.Test(t, func(t *testing.T) {
			c, guard := newCluster(t, ""), &fickle{}
			c.server.guard = guard
			s := servePiped(t, c, quietly)
			conn := s.dial(t, "GET "+streamPath+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mine\r\n\r\n")
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			stream := streaming{conn, answer, bufio.NewReader(answer.Body)}
			stream.line(t)
			for i, says := range []error{nil, errors.New("nobody answers"), nil} {
				guard.say(says)
				time.Sleep(c.server.limits.streamAdmitted)
				synctest.Wait()
				if got := guard.times(); got != i+2 {
					t.Fatalf("it was asked %d times, want %d", got, i+2)
				}
				c.foreign(t, 1)
				c.server.events.Collect()
				if got := stream.line(t).ReferenceID; got == "" {
					t.Fatalf("no record after %v was said", says)
				}
			}
			guard.say(why)
			time.Sleep(c.server.limits.streamAdmitted)
			last, err := io.ReadAll(stream.lines)
			var p Problem
			if err != nil || json.Unmarshal(last, &p) != nil || !strings.Contains(p.Description, why.Error()) {
				t.Errorf("the stream ends with %q, %v; want one line that says %v", last, err, why)
			}
			if want := map[error]int{ErrUnknown: 401, ErrForbidden: 403}[why]; p.StatusCode != want {
				t.Errorf("status %d, want %d", p.StatusCode, want)
			}
		})
	}
}
