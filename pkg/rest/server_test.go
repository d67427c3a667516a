package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

func TestProblems(t *testing.T) {
	c := newCluster(t, "")
	for _, p := range []struct {
		method, path string
		want         documents.Problem
		allow        string
	}{
		{"GET", "/ws/v1/partition/other/queues", documents.Problem{StatusCode: 404, Message: "Partition not found", Description: "there is no partition other; the only one is default"}, ""},
		{"GET", "/ws/v1/partition/a%2Fb/queues", documents.Problem{StatusCode: 404, Message: "Partition not found", Description: "there is no partition a/b; the only one is default"}, ""},
		{"GET", "/ws/v1/partition/Default/queues", documents.Problem{StatusCode: 404, Message: "Partition not found", Description: "there is no partition Default; the only one is default"}, ""},
		{"GET", "/nowhere", documents.Problem{StatusCode: 404, Message: "Page not found", Description: "there is no page /nowhere"}, ""},
		{"GET", "/ws/v1/queues", documents.Problem{StatusCode: 404, Message: "Page not found", Description: "there is no page /ws/v1/queues"}, ""},
		{"GET", queuesPath + "/", documents.Problem{StatusCode: 404, Message: "Page not found", Description: "there is no page " + queuesPath + "/"}, ""},
		{"POST", "/nowhere", documents.Problem{StatusCode: 404, Message: "Page not found", Description: "there is no page /nowhere"}, ""},
		{"POST", queuesPath, documents.Problem{StatusCode: 405, Message: "Method not allowed", Description: "POST does nothing here; use GET"}, "GET, HEAD"},
		{"DELETE", queuesPath, documents.Problem{StatusCode: 405, Message: "Method not allowed", Description: "DELETE does nothing here; use GET"}, "GET, HEAD"},
	} {
		r, body := c.do(t, p.method, p.path)
		var got documents.Problem
		if err := json.Unmarshal(body, &got); err != nil {
			t.Errorf("%s %s: %v in %q", p.method, p.path, err, body)
			continue
		}
		if diff := cmp.Diff(p.want, got); diff != "" || r.Code != p.want.StatusCode || r.Header().Get("Allow") != p.allow {
			t.Errorf("%s %s: %d, Allow %q (-want +got)\n%s", p.method, p.path, r.Code, r.Header().Get("Allow"), diff)
		}
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

// TestAnswersAreOfOneMoment changes the store between two answers.
func TestAnswersAreOfOneMoment(t *testing.T) {
	c := referenceCluster(t)
	before := c.queues(t)
	expect.Same(t, "nothing happened, yet", before, c.queues(t))
	c.store.DeleteNode("n1", c.now)
	after := c.queues(t)
	if got := after["maxResource"].(map[string]any)["vcore"]; got != 32000.0 {
		t.Errorf("root's max after a node is gone: %v, want what the nodes hold, 32000", got)
	}
	if got := after["headroom"].(map[string]any)["vcore"]; got != -1000.0 {
		t.Errorf("root's headroom: %v, want -1000", got)
	}
}

func TestServe(t *testing.T) {
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		newCluster(t, "").server.Serve(ctx, listener, logger)
	}()
	address := "http://" + listener.Addr().String() + queuesPath
	r, err := http.Get(address)
	expect.OK(t, err)
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(body), `"queuename":"root"`) {
		t.Errorf("%s, %v: %s", r.Status, err, body)
	}
	cancel()
	<-done
	if r, err := http.Get(address); err == nil {
		_ = r.Body.Close()
		t.Error("still answers after the end of its context")
	}
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if !strings.Contains(log, "REST is served") || strings.Contains(log, "REST has stopped") {
		t.Errorf("log: %s", log)
	}
}

func TestServeTellsWhyItStopped(t *testing.T) {
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = listener.Close()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	newCluster(t, "").server.Serve(t.Context(), listener, logger)
	if log := logger.GetSink().(ktesting.Underlier).GetBuffer().String(); !strings.Contains(log, "REST has stopped") {
		t.Errorf("log: %s", log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	newServer(Options{}).Serve(ctx, listener, klog.Background()) // returns
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
		expect.Same(t, fmt.Sprintf("%d of %d", c.used, c.limit), want, documents.Percent(used, limit))
	}
}

// TestHosts: only requests for names of this interface are answered.
func TestHosts(t *testing.T) {
	c := newCluster(t, "")
	c.server.hosts = newHosts(HostNames([]string{"yunikorn-service", "Paddock.example.com"}, "queues"))
	s := serveCluster(t, c, func(*limits) {})
	ask := func(headers string) (int, string) {
		conn := s.dial(t, "GET / HTTP/1.1\r\nConnection: close\r\n"+headers+"\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		expect.OK(t, err)
		defer func() { _ = answer.Body.Close() }()
		body := expect.Get(io.ReadAll(answer.Body))(t)
		return answer.StatusCode, string(body)
	}
	for _, host := range []string{
		s.address, "127.0.0.1:9080", "10.0.0.7:9080", "10.0.0.7", "[::1]:9080", "[fd00::1]", "[fe80::1%25eth0]:9080",
		"localhost", "localhost:9080", "LocalHost.:9080", "paddock.localhost",
		"yunikorn-service:9080", "yunikorn-service.queues", "yunikorn-service.queues.svc:9080", "yunikorn-service.queues.svc.cluster.local.",
		"Paddock.Example.com",
	} {
		if status, body := ask("Host: " + host); status != http.StatusOK {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
	for _, host := range []string{
		"evil.example", "evil.example:9080", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "queues",
		"yunikorn-service.other", "yunikorn-service.other.svc", "yunikorn-service.queues.svc.evil.example", "a.paddock.example.com", "example.com", "1.2.3",
	} {
		status, body := ask("Host: " + host)
		if status != http.StatusMisdirectedRequest || !strings.Contains(body, "not known as "+host+":") || !strings.Contains(body, "restHosts") {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
	// Through the API server's proxy the host is that of the API server.
	if status, body := ask("Host: api.example.com:6443\r\n" + ClientHeader + ": kubectl-paddock"); status != http.StatusOK {
		t.Errorf("kubectl paddock through the API server: %d %s", status, body)
	}
}
