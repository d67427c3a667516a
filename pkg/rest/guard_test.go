package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

func TestGuard(t *testing.T) {
	c := newCluster(t, "")
	for says, want := range map[error]int{
		ErrUnknown: 401, fmt.Errorf("%w: no", ErrForbidden): 403, errors.New("no answer"): 503, nil: 200,
	} {
		c.server.options.Guard = guardFunc(func(*http.Request, bool) error { return says })
		c.http = c.server.Handler()
		w, _ := c.do(http.MethodOptions, queuesPath)
		expect.Same(t, "OPTIONS, whatever the guard says", http.StatusNoContent, w.Code)
		for _, path := range []string{queuesPath, "/api/v1/holds", streamPath, batchPath, "/debug/fullstatedump", "/ws/v1/validate-conf", "/nowhere"} {
			if says == nil && (path == "/nowhere" || path == "/ws/v1/validate-conf") {
				continue // there is none, or it takes no HEAD
			}
			w, body := c.do(http.MethodHead, path)
			expect.Same(t, path, want, w.Code)
			var p documents.Problem
			wellRefused := json.Unmarshal(body, &p) == nil && p.StatusCode == want && p.Description != ""
			expect.That(t, says == nil || wellRefused, "%v, %s: %s", says, path, body)
			asksForToken := w.Header().Get("WWW-Authenticate") == "Bearer"
			expect.Same(t, path+" asks for a token", want == http.StatusUnauthorized, asksForToken)
		}
	}
}

// fickle is a guard that gives the stored verdict. It removes the token from the
// request, as the API server's own authenticator does.
type fickle struct {
	says  atomic.Pointer[error]
	asked atomic.Int32
}

func (f *fickle) Admit(r *http.Request, _ bool) error {
	f.asked.Add(1)
	if r.Header.Get("Authorization") != "Bearer mine" {
		return errors.New("the request has no token")
	}
	r.Header.Del("Authorization")
	return *f.says.Load()
}

// TestAStreamEndsWithThePermission: the permission of a stream is checked again from time to time. An
// outage ends nothing; a reader that lost the permission finds that in the last line.
func TestAStreamEndsWithThePermission(t *testing.T) {
	for _, why := range []error{ErrUnknown, ErrForbidden} {
		synctest.Test(t, func(t *testing.T) {
			c, guard := newCluster(t, ""), &fickle{}
			stream := guardedStream(t, c, guard, quietly)
			for i, says := range []error{nil, errors.New("no answer"), nil} {
				guard.says.Store(&says)
				time.Sleep(c.server.limits.streamAdmitted)
				synctest.Wait()
				expect.Same(t, "questions", int32(i+2), guard.asked.Load())
				c.happen(1)
				expect.That(t, stream.line(t).ReferenceID != "", "no record after %v was said", says)
			}
			guard.says.Store(&why)
			time.Sleep(c.server.limits.streamAdmitted)
			isEnd(t, expect.Get(io.ReadAll(stream.lines))(t), why)
		})
	}
}

// guardedStream is a stream of a reader with a token, after its first line.
func guardedStream(t *testing.T, c *cluster, guard *fickle, limit func(*limits)) streaming {
	t.Helper()
	c.server.options.Guard = guard
	guard.says.Store(new(error))
	stream := serveCluster(t, c, limit).stream(t, "", "Authorization: Bearer mine")
	stream.line(t)
	return stream
}

// isEnd looks whether a text is the one line with which a stream ends, and says why.
func isEnd(t *testing.T, last []byte, why error) {
	t.Helper()
	var p documents.Problem
	expect.That(t, json.Unmarshal(last, &p) == nil && strings.Contains(p.Description, why.Error()),
		"the stream ends with %q; want one line that says %v", last, why)
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
			c.happen(1)
			synctest.Wait() // this one is on the way
			c.happen(inHand)
			guard.says.Store(&says)
			time.Sleep(c.server.limits.streamAdmitted)
			// Only in the beginning, or this test proves nothing.
			expect.Same(t, "questions while the reader takes nothing", int32(1), guard.asked.Load())
			stream.line(t)
			if errors.Is(says, ErrUnknown) || errors.Is(says, ErrForbidden) {
				isEnd(t, expect.Get(io.ReadAll(stream.lines))(t), says)
				return
			}
			for i := range inHand {
				expect.Same(t, fmt.Sprint("record after ", says), fmt.Sprint("f", i+2), stream.line(t).ReferenceID)
			}
			expect.Same(t, "questions, once more than in the beginning", int32(2), guard.asked.Load())
		})
	}
}
