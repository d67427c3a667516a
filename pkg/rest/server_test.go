package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2/ktesting"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

func TestProblems(t *testing.T) {
	c := newCluster(t, "")
	const partition, page, method = "Partition not found", "Page not found", "Method not allowed"
	const only = "; the only one is default"
	for _, p := range []struct {
		method, path         string
		status               int
		message, description string
		allow                string
	}{
		{"GET", "/ws/v1/partition/a%2Fb/queues", 404, partition, "there is no partition a/b" + only, ""},
		{"GET", "/ws/v1/partition/Default/queues", 404, partition, "there is no partition Default" + only, ""},
		{"GET", "/ws/v1/queues", 404, page, "there is no page /ws/v1/queues", ""},
		{"GET", queuesPath + "/", 404, page, "there is no page " + queuesPath + "/", ""},
		{"POST", "/nowhere", 404, page, "there is no page /nowhere", ""},
		{"POST", queuesPath, 405, method, "POST does nothing here; use GET", "GET, HEAD"},
		{"DELETE", queuesPath, 405, method, "DELETE does nothing here; use GET", "GET, HEAD"},
		{"GET", "/api/v1/preview", 405, method, "GET does nothing here; use POST", "POST"},
	} {
		r, body := c.do(p.method, p.path)
		var got documents.Problem
		expect.OK(t, json.Unmarshal(body, &got))
		request := p.method + " " + p.path
		want := documents.Problem{StatusCode: p.status, Message: p.message, Description: p.description}
		expect.Same(t, request, want, got)
		expect.Same(t, request+": status", p.status, r.Code)
		expect.Same(t, request+": Allow", p.allow, r.Header().Get("Allow"))
		checkHeader(t, r)
	}
}

func checkHeader(t testing.TB, r *httptest.ResponseRecorder) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Type": "application/json; charset=UTF-8", "Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff",
	} {
		expect.Same(t, "header "+name, want, r.Header().Get(name))
	}
}

// TestServeTellsHowItEnds: the end of its context is no error; another end is.
func TestServeTellsHowItEnds(t *testing.T) {
	for name, stopped := range map[string]bool{"its context ended": false, "its listener is closed": true} {
		listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		if stopped {
			_ = listener.Close()
		} else {
			cancel()
		}
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		newServer(Options{}).Serve(ctx, listener, logger) // returns
		cancel()
		log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		expect.That(t, strings.Contains(log, "REST is served"), "%s: log: %s", name, log)
		expect.Same(t, name+": it has stopped", stopped, strings.Contains(log, "REST has stopped"))
	}
}

func TestPercent(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct{ used, limit, want int64 }{
		{0, 10, -1}, {0, 0, -1}, {-5, 10, -1}, // -1: not shown
		{1, 10, 10}, {1, 3, 33}, {2, 3, 66}, {999, 1000, 99}, {1000, 1000, 100}, {1, 1000, 0},
		{15, 10, 150}, {5, 0, 100}, {most, 0, 100},
		{most, most, 100}, {most / 2, most, 49}, {most - 1, most, 99}, {most / 100, most, 0}, {most/100 + 1, most, 1},
		{most, 1, most}, {most, 99, most}, {most, 100, most}, {most, 200, most / 2},
	} {
		want := map[string]resources.Amount{}
		if c.want >= 0 {
			want["x"] = resources.Amount(c.want)
		}
		used := resources.VectorOf(resources.Entry{Name: "x", Amount: resources.Amount(c.used)}, resources.Entry{Name: "unlimited", Amount: 7})
		limit := resources.LimitFrom(map[string]resources.Amount{"x": resources.Amount(c.limit)})
		expect.Same(t, fmt.Sprintf("%d of %d", c.used, c.limit), want, maps.Collect(documents.Percents(used, limit)))
	}
}

// TestHosts: only requests for names of this interface are answered.
func TestHosts(t *testing.T) { synctest.Test(t, hosted) }

func hosted(t *testing.T) {
	c := newCluster(t, "")
	c.server.hosts = newHosts(HostNames([]string{"yunikorn-service", "Paddock.example.com"}, "queues"))
	s := serveCluster(t, c, quietly)
	ask := func(headers string) (int, string) {
		return s.dial(t, "GET / HTTP/1.1\r\n"+headers+"\r\n\r\n").answer()
	}
	for _, host := range []string{
		"127.0.0.1:9080", "10.0.0.7:9080", "10.0.0.7", "[::1]:9080", "[fd00::1]", "[fe80::1%25eth0]:9080",
		"localhost", "localhost:9080", "LocalHost.:9080", "paddock.localhost",
		"yunikorn-service:9080", "yunikorn-service.queues", "yunikorn-service.queues.svc:9080", "yunikorn-service.queues.svc.cluster.local.",
		"Paddock.Example.com",
	} {
		status, _ := ask("Host: " + host)
		expect.Same(t, host, http.StatusOK, status)
	}
	for _, host := range []string{
		"evil.example", "evil.example:9080", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "queues",
		"yunikorn-service.other", "yunikorn-service.other.svc", "yunikorn-service.queues.svc.evil.example", "a.paddock.example.com", "example.com", "1.2.3",
	} {
		status, body := ask("Host: " + host)
		expect.Same(t, host, http.StatusMisdirectedRequest, status)
		expect.Says(t, body, "not known as "+host+":", "restHosts")
	}
	// Through the API server's proxy the host is that of the API server.
	status, _ := ask("Host: api.example.com:6443\r\n" + documents.ClientHeader + ": kubectl-paddock")
	expect.Same(t, "kubectl paddock through the API server", http.StatusOK, status)
}

func TestConfigBeforeTheFirstIsRead(t *testing.T) {
	c := show(webtest.Unstarted(t))
	r, body := c.do(http.MethodGet, "/ws/v1/config")
	expect.That(t, r.Code == http.StatusServiceUnavailable, "%d %s", r.Code, body)
	expect.Same(t, "config", nil, read[map[string]any](t, c, "/ws/v1/fullstatedump")["config"])
	c.Configure("partitions: [{name: default, queues: [{name: root}]}]")
	r, body = c.do(http.MethodGet, "/ws/v1/config")
	expect.That(t, r.Code == http.StatusOK, "once there is one: %d %s", r.Code, body)
}

// TestStandbySaysSo: each page of a standby replica says that it stands by and that the
// leader knows what was tried; once it leads it does not say so.
func TestStandbySaysSo(t *testing.T) {
	c := newCluster(t, "partitions: [{name: default, placementrules: [{name: provided}], "+
		"queues: [{name: root, submitacl: '*', queues: [{name: a, resources: {max: {vcore: 4}}}]}]}]")
	explain := func(pod string) documents.Explanation {
		return read[documents.Explanation](t, c, "/api/v1/pods/ns/"+pod+"/explain")
	}
	leads := false
	c.server.options.Leading = func() bool { return leads }
	c.does(t, `
		pod name=tried queue=root.a app=x request=vcore=1
		pod name=large queue=root.a app=y request=vcore=8
		pod name=lost queue=root.b app=z request=vcore=1
		pod name=runs queue=root.a app=z request=vcore=1 node=n1
	`)
	for _, e := range c.server.endpoints() {
		w, _ := c.do(e.method, strings.NewReplacer("{", "", "}", "").Replace(e.path))
		expect.Same(t, e.path+" has "+documents.RoleHeader, documents.RoleStandby, w.Header().Get(documents.RoleHeader))
	}
	for pod, want := range map[string]bool{"tried": true, "large": true, "lost": false, "runs": false} {
		x := explain(pod)
		expect.That(t, x.Standby, "pod %s: it is not said that this replica is a standby", pod)
		expect.Same(t, pod+" is told to ask the leader", want, slices.Contains(x.ToDo, documents.AskLeader))
	}
	want := "Pod ns/tried was let through. Only the leader knows the result; this replica is a standby."
	expect.Same(t, "", want, explain("tried").Summary)
	standing, _ := c.do(http.MethodGet, "/")
	expect.Says(t, standing.Body.String(), "This replica is a standby")

	leads = true
	x := explain("tried")
	expect.That(t, !x.Standby && !slices.Contains(x.ToDo, documents.AskLeader), "the leader says: %+v", x)
	expect.That(t, strings.Contains(x.Summary, "is looking for a node"), "the leader says: %s", x.Summary)
	again := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	again.Header.Set("If-None-Match", standing.Header().Get("ETag"))
	page := c.ask(again)
	expect.That(t, page.Code == http.StatusOK && page.Header().Get(documents.RoleHeader) == "", "the leader: %d", page.Code)
	expect.That(t, !strings.Contains(page.Body.String(), "This replica is a standby"), "it stands by")
}

func checking(run func() error) *Server {
	return newServer(Options{Checks: []HealthCheck{{Name: "Books", Run: run}}})
}

func readHealth(t *testing.T, handler http.Handler) (got Health, status int, age string) {
	t.Helper()
	w := ask(handler, http.MethodGet, "/ws/v1/scheduler/healthcheck", "")
	expect.OK(t, json.Unmarshal(w.Body.Bytes(), &got))
	return got, w.Code, w.Header().Get("Age")
}

// TestHealthIsNotKnownBeforeTheFirstCheck: then it is answered 404, as by YuniKorn.
func TestHealthIsNotKnownBeforeTheFirstCheck(t *testing.T) {
	runs := 0
	server := checking(func() error { runs++; return nil })
	for range 3 {
		_, status, _ := readHealth(t, server.Handler())
		expect.Same(t, "status", http.StatusNotFound, status)
	}
	told := server.checked()
	expect.That(t, runs == 0 && told.At.IsZero(), "readers ran %d checks; told is %+v", runs, told)
}

// TestChecksRunAtTheirPace: at the start, and then once in an interval, which is longer
// where they take long. Readers change nothing of it, and wait for none.
func TestChecksRunAtTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first = checkInterval / checkRest // so it changes no pace
		type result struct {
			err   error
			takes time.Duration
		}
		var runs atomic.Int32
		var next atomic.Pointer[result]
		next.Store(&result{takes: first})
		server := checking(func() error {
			runs.Add(1)
			found := next.Load()
			time.Sleep(found.takes)
			return found.err
		})
		ctx, stop := context.WithCancel(t.Context())
		go server.health.run(ctx)
		after := func(pause time.Duration, wantRuns int32, healthy bool, wantAge string) {
			t.Helper()
			time.Sleep(pause)
			synctest.Wait()
			for range 3 {
				asked := time.Now()
				got, _, age := readHealth(t, server.Handler())
				waited := time.Since(asked)
				expect.That(t, waited <= 0, "a reader waited %v", waited)
				expect.Same(t, "healthy", healthy, got.Healthy)
				expect.Same(t, "runs", wantRuns, runs.Load())
				expect.Same(t, "age", wantAge, age)
			}
		}
		after(0, 1, false, "") // the first one is under way
		after(first, 1, true, "0")
		after(checkInterval-first-1, 1, true, "4")
		next.Store(&result{errors.New("wrong"), checkInterval})
		after(1, 2, true, "5") // the second one is under way
		after(checkInterval, 2, false, "5")
		next.Store(&result{})
		after(checkPause-1, 2, false, "64")
		after(1, 3, true, "0")
		stop()
		time.Sleep(2 * checkRest * checkInterval)
		expect.Same(t, "runs after the end", int32(3), runs.Load())
	})
}

// TestAPanicOfACheckIsSaid: it stops neither the scheduler nor the other checks.
func TestAPanicOfACheckIsSaid(t *testing.T) {
	server := newServer(Options{Checks: []HealthCheck{
		{Name: "Broken", Run: func() error { panic("no node") }}, {Name: "Books", Run: func() error { return nil }},
	}})
	server.CheckHealth()
	got, status, _ := readHealth(t, server.Handler())
	expect.Same(t, "status", http.StatusOK, status)
	if len(got.HealthChecks) != 2 {
		t.Fatalf("%+v", got)
	}
	expect.That(t, !got.Healthy, "%+v", got)
	expect.That(t, got.HealthChecks[1].Succeeded, "the other check is not run")
	expect.Says(t, got.HealthChecks[0].DiagnosisMessage, "no node")
}

// echo answers with the manifest as the name of the pod.
type echo struct {
	err  error
	took time.Duration
}

func (e echo) Preview(ctx context.Context, manifest []byte) (*documents.Preview, error) {
	if e.took > 0 {
		select {
		case <-time.After(e.took):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &documents.Preview{Ref: objects.Ref{Name: string(manifest)}, Outcome: documents.PreviewFits}, e.err
}

func previewServer(p Previewer) *Server {
	return newServer(Options{Previewer: func() Previewer { return p }})
}

func TestPreviewAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server *Server
		body   string
		status int
		told   string
	}{
		{"fine", previewServer(echo{}), "a pod", 200, `"name":"a pod"`},
		{"as large as may be", previewServer(echo{}), strings.Repeat("x", documents.PreviewBytes), 200, `"outcome":"fits"`},
		{"too large", previewServer(echo{}), strings.Repeat("x", documents.PreviewBytes+1), 413, "at most 262144 bytes"},
		{"no pod", previewServer(echo{err: &documents.ManifestError{Text: "kind: is missing"}}), "", 400, "kind: is missing"},
		{"trouble", previewServer(echo{err: errors.New("no nodes")}), "", 500, "no nodes"},
		{"no previewer yet", previewServer(nil), "", 503, "makes no previews"},
	} {
		w := ask(tt.server.Handler(), http.MethodPost, "/api/v1/preview", tt.body)
		expect.Same(t, tt.name, tt.status, w.Code)
		expect.That(t, strings.Contains(w.Body.String(), tt.told), "%s: %s, want %q", tt.name, w.Body, tt.told)
		expect.That(t, json.Valid(w.Body.Bytes()), "%s: no JSON: %s", tt.name, w.Body)
	}
}

// One preview is made at a time; a request that waits for its turn holds up no other
// page, and gives up after ten seconds.
func TestPreviewsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := previewServer(echo{took: 8 * time.Second}).Handler()
		began := time.Now()
		ends := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				if ask(handler, http.MethodPost, "/api/v1/preview", "x").Code != http.StatusOK {
					ends <- -1
					return
				}
				ends <- time.Since(began)
			}()
		}
		time.Sleep(2 * time.Second)
		w := ask(handler, http.MethodGet, "/ws/v1/nothing", "")
		expect.That(t, w.Code == http.StatusNotFound && time.Since(began) == 2*time.Second,
			"another reader was answered with %d after %v", w.Code, time.Since(began))
		got := []time.Duration{<-ends, <-ends, <-ends}
		slices.Sort(got)
		expect.Same(t, "answered after", []time.Duration{-1, 8 * time.Second, 16 * time.Second}, got)
	})
}

// broken panics, as a filter may on an unusual pod.
type broken struct{}

func (broken) Preview(context.Context, []byte) (*documents.Preview, error) { panic("no zone") }

// TestThePreviewAfterOneThatEnded: a preview that takes too long is given up, and however a
// preview ends, the next one is made.
func TestThePreviewAfterOneThatEnded(t *testing.T) {
	for name, c := range map[string]struct {
		previewer Previewer
		leaves    time.Duration // when its reader leaves; 0 for never
		took      time.Duration
		status    int
		told      string
	}{
		"in its time":       {echo{took: documents.PreviewTime - time.Second}, 0, documents.PreviewTime - time.Second, http.StatusOK, ""},
		"too long":          {echo{took: time.Hour}, 0, documents.PreviewTime, http.StatusServiceUnavailable, "longer than 20s"},
		"its reader leaves": {echo{took: time.Hour}, time.Second, time.Second, http.StatusInternalServerError, ""},
		"a filter panics":   {broken{}, 0, 0, http.StatusInternalServerError, "no zone"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := previewServer(c.previewer)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.leaves > 0 {
				time.AfterFunc(c.leaves, cancel)
			}
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/preview", strings.NewReader("x"))
			began := time.Now()
			w := answer(s.Handler(), r)
			expect.Same(t, name+": it took", c.took, time.Since(began))
			expect.Same(t, name, c.status, w.Code)
			expect.That(t, strings.Contains(w.Body.String(), c.told), "%s: %s", name, w.Body)
			time.Sleep(time.Minute)
			s.options.Previewer = func() Previewer { return echo{} }
			next := ask(s.Handler(), http.MethodPost, "/api/v1/preview", "x")
			expect.Same(t, name+": the next one", http.StatusOK, next.Code)
		})
	}
}
