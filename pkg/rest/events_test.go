package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

const batchPath = "/ws/v1/events/batch"

type batch struct {
	InstanceUUID        string
	LowestID, HighestID uint64
	EventRecords        []event
}

type event struct {
	Type      int    `json:"type"`
	Object    string `json:"objectID"`
	Message   string `json:"message"`
	Nanos     int64  `json:"timestampNano"`
	Change    int    `json:"eventChangeType"`
	Detail    int    `json:"eventChangeDetail"`
	Reference string `json:"referenceID"`
	Resource  struct {
		Resources map[string]struct{ Value int64 }
	} `json:"resource"`
}

func (c *cluster) batch(t *testing.T, query string) batch {
	t.Helper()
	return read[batch](t, c, batchPath+query)
}

func (c *cluster) foreign(n int) {
	for range n {
		c.foreigners++
		c.Add(objects.Pod{
			Identity: objects.Identity{UID: types.UID(fmt.Sprint("f", c.foreigners))},
			Spec:     objects.Spec{Foreign: true}, Status: objects.Status{Node: "n"},
			Request: queuestest.Vector("vcore=1 pods=1"),
		})
	}
}

func TestEventBatch(t *testing.T) {
	c := newCluster(t, "")
	empty := c.batch(t, "")
	_, err := time.Parse(time.RFC3339, empty.InstanceUUID)
	expect.That(t, err != nil && len(empty.InstanceUUID) == 36, "instance: %s", empty.InstanceUUID)
	expect.That(t, empty.EventRecords != nil && empty.LowestID == 0 && empty.HighestID == 0, "%+v", empty)
	c.foreign(5)
	all := c.batch(t, "")
	expect.Same(t, "instance", empty.InstanceUUID, all.InstanceUUID)
	expect.That(t, all.LowestID == 0 && all.HighestID == 4, "%+v", all)
	want := event{Type: 3, Object: "n", Message: "foreign allocation: default", Nanos: c.Now.UnixNano(), Change: 2, Detail: 303, Reference: "f1"}
	want.Resource.Resources = map[string]struct{ Value int64 }{"vcore": {1000}, "pods": {1}}
	expect.Same(t, "", want, all.EventRecords[0])
	for query, want := range map[string][]string{
		"?count=2": {"f1", "f2"}, "?start=3": {"f4", "f5"}, "?start=1&count=1": {"f2"}, "?start=5": {}, "?start=18446744073709551615": {},
		"?count=18446744073709551615&start=4": {"f5"},
	} {
		got := c.batch(t, query)
		pods := []string{}
		for _, e := range got.EventRecords {
			pods = append(pods, e.Reference)
		}
		expect.Same(t, query, want, pods)
		expect.Same(t, query+": numbers", []uint64{0, 4}, []uint64{got.LowestID, got.HighestID})
	}
	for _, query := range []string{"?count=0", "?count=-1", "?count=x", "?start=-1", "?start=1.5"} {
		r, _ := c.do(http.MethodGet, batchPath+query)
		expect.Same(t, query, http.StatusBadRequest, r.Code)
	}
}

func TestEventBatchIsBounded(t *testing.T) {
	c := newCluster(t, "")
	c.server.options.Events = eventlog.New(c.Store.Follow(output.Facts), batchSize+5)
	c.foreign(batchSize + 10)
	all := c.batch(t, "?count=1000000")
	expect.Same(t, "records", batchSize, len(all.EventRecords))
	expect.Same(t, "numbers", []uint64{5, batchSize + 9}, []uint64{all.LowestID, all.HighestID})
	expect.Same(t, "the first one", "f6", all.EventRecords[0].Reference)
	old := c.batch(t, "?start=4")
	expect.That(t, len(old.EventRecords) == 0 && old.LowestID == 5, "records that are not kept: %+v", old)
}

// TestRecordsAreYuniKorns: each combination of numbers is one that its interface has.
func TestRecordsAreYuniKorns(t *testing.T) {
	known := readJSON(t, "testdata/events.json")
	c := busyCluster(t)
	_, why := c.Store.Commit("uid-a1", nil, c.Now) // its victims hear of it by records of type REQUEST
	expect.That(t, why.None(), "%s", why)
	seen := map[string]bool{}
	for _, e := range c.batch(t, "").EventRecords {
		changes, _ := known[fmt.Sprint(e.Type)].(map[string]any)
		details, _ := changes[fmt.Sprint(e.Change)].([]any)
		expect.That(t, slices.Contains(details, any(float64(e.Detail))),
			"YuniKorn has no records %d/%d/%d", e.Type, e.Change, e.Detail)
		expect.That(t, e.Object != "" && e.Nanos != 0, "record without object or time: %+v", e)
		seen[fmt.Sprint(e.Type)] = true
	}
	for kind := range known {
		expect.That(t, seen[kind], "no record of type %s", kind)
	}
}

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
