package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// fickle is a guard that gives the configured verdict. It removes the token from the
// request, as the API server's own authenticator does.
type fickle struct {
	mu    sync.Mutex
	says  error
	asked int
}

func (f *fickle) Admit(r *http.Request, _ bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if r.Header.Get("Authorization") != "Bearer mine" {
		return errors.New("the request has no token")
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

// TestAStreamEndsWithThePermission: the permission of a stream is checked again from time
// to time. An outage ends nothing; a reader that lost the permission finds that in the
// last line.
func TestAStreamEndsWithThePermission(t *testing.T) {
	for _, why := range []error{ErrUnknown, ErrForbidden} {
		synctest.Test(t, func(t *testing.T) {
			c, guard := newCluster(t, ""), &fickle{}
			stream := guardedStream(t, c, guard, quietly)
			for i, says := range []error{nil, errors.New("no answer"), nil} {
				guard.say(says)
				time.Sleep(c.server.limits.streamAdmitted)
				synctest.Wait()
				if got := guard.times(); got != i+2 {
					t.Fatalf("it was asked %d times, want %d", got, i+2)
				}
				c.foreign(t, 1)
				c.server.options.Events.Collect()
				if got := stream.line(t).ReferenceID; got == "" {
					t.Fatalf("no record after %v was said", says)
				}
			}
			guard.say(why)
			time.Sleep(c.server.limits.streamAdmitted)
			last := expect.Get(io.ReadAll(stream.lines))(t)
			isEnd(t, last, why)
		})
	}
}

// guardedStream is a stream of a reader with a token, after its first line.
func guardedStream(t *testing.T, c *cluster, guard *fickle, limit func(*limits)) streaming {
	t.Helper()
	c.server.options.Guard = guard
	stream := servePiped(t, c, limit).stream(t, "", "Authorization: Bearer mine")
	expect.OK(t, stream.SetReadDeadline(time.Time{}))
	stream.line(t)
	return stream
}

// isEnd looks whether a text is the one line with which a stream ends, and says why.
func isEnd(t *testing.T, last []byte, why error) {
	t.Helper()
	var p documents.Problem
	if json.Unmarshal(last, &p) != nil || !strings.Contains(p.Description, why.Error()) {
		t.Errorf("the stream ends with %q; want one line that says %v", last, why)
	}
	expect.Same(t, "status", map[error]int{ErrUnknown: 401, ErrForbidden: 403}[why], p.StatusCode)
}

// TestAStreamIsAskedAboutWithRecordsInHand: one that always has more to send is asked
// about as one that waits is. Its reader takes nothing while there is more and more;
// when it goes on, it gets what was on the way, and the rest if it still may read.
func TestAStreamIsAskedAboutWithRecordsInHand(t *testing.T) {
	const inHand = 10 * streamBite
	for _, says := range []error{nil, errors.New("no answer"), ErrUnknown, ErrForbidden} {
		synctest.Test(t, func(t *testing.T) {
			c, guard := newCluster(t, ""), &fickle{}
			stream := guardedStream(t, c, guard, func(l *limits) { l.streamTime = 2 * l.streamAdmitted })
			c.foreign(t, 1)
			c.server.options.Events.Collect()
			synctest.Wait() // this one is on the way
			c.foreign(t, inHand)
			c.server.options.Events.Collect()
			guard.say(says)
			time.Sleep(c.server.limits.streamAdmitted)
			if got := guard.times(); got != 1 {
				t.Fatalf("while the reader takes nothing it is asked %d times, want once, in the beginning: this test proves nothing", got)
			}
			stream.line(t)
			if errors.Is(says, ErrUnknown) || errors.Is(says, ErrForbidden) {
				last := expect.Get(io.ReadAll(stream.lines))(t)
				isEnd(t, last, says)
				return
			}
			for i := range inHand {
				if got, want := stream.line(t).ReferenceID, fmt.Sprint("f", i+2); got != want {
					t.Fatalf("after %v was said: %s, want %s", says, got, want)
				}
			}
			expect.Same(t, "questions, once more than in the beginning", 2, guard.times())
		})
	}
}
