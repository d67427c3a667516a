package framework_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

// The cluster of BenchmarkEveryPage: 5,000 queues, 1,000 full nodes, 16,000 running pods
// and 2,000 waiting pods, half of the latter in queues below their guarantee.
const (
	pagedParents, pagedLeaves = 50, 99
	pagedNodes                = 1000
	pagedPerNode              = 16
	pagedWaiting              = 2000
)

func pagedDocument() string {
	var y strings.Builder
	y.WriteString("partitions:\n- name: default\n  placementrules: [{name: provided}]\n  queues:\n  - name: root\n    submitacl: '*'\n    queues:\n")
	for i := range pagedParents {
		fmt.Fprintf(&y, "    - name: p%d\n      parent: true\n      queues:\n", i)
		for j := range pagedLeaves {
			limits := ""
			if i == 0 && j == 0 { // so that there is a group
				limits = ", limits: [{limit: staff, groups: [staff], maxresources: {vcore: 1000}}]"
			}
			fmt.Fprintf(&y, "      - {name: q%d, resources: {guaranteed: {vcore: 4}, max: {vcore: 1000}}%s}\n", j, limits)
		}
	}
	return y.String()
}

func pagedQueue(i int) string {
	return fmt.Sprintf("root.p%d.q%d", i%pagedParents, i/pagedParents%pagedLeaves)
}

// fillForPages makes the pods. Running ones are in the first half of the queues.
func fillForPages(c *cluster) {
	c.addNodes(pagedNodes, pagedPerNode)
	for i := range pagedNodes * pagedPerNode {
		p := inQueue(pod(managed, fmt.Sprintf("run-%05d", i), i%1000), pagedQueue(i%2500), fmt.Sprintf("app-%d", i%1000))
		if i == 0 {
			p.Annotations = map[string]string{placement.KeyUserInfo: `{"user":"ann","groups":["staff"]}`}
		}
		c.api.create(c.t, onNode(p, fmt.Sprintf("node-%03d", i%pagedNodes)))
	}
	for i := range pagedWaiting {
		c.api.create(c.t, inQueue(pod(managed, fmt.Sprintf("wait-%05d", i), 2000+i), pagedQueue(i*5/2), fmt.Sprintf("late-%d", i%100)))
	}
}

// everyPage are all paths that REST answers: YuniKorn's interface, our own, and the pages
// for people. A POST has its body after the path.
var everyPage = []string{
	"/ws/v1/partitions", "/ws/v1/clusters", "/ws/v1/config", "/ws/v1/metrics", "/ws/v1/history/apps", "/ws/v1/history/containers",
	"/ws/v1/scheduler/healthcheck", "/ws/v1/scheduler/node-utilizations", "/ws/v1/events/batch", "/ws/v1/fullstatedump", "/debug/fullstatedump",
	"/ws/v1/partition/default/queues", "/ws/v1/partition/default/queue/root.p7.q7", "/ws/v1/partition/default/queue/root?subtree",
	"/ws/v1/partition/default/queue/root.p7.q7/applications", "/ws/v1/partition/default/queue/root.p7.q7/applications/active",
	"/ws/v1/partition/default/queue/root.p7.q0/application/app-7", "/ws/v1/partition/default/applications/active",
	"/ws/v1/partition/default/applications/completed", "/ws/v1/partition/default/applications/rejected",
	"/ws/v1/partition/default/application/app-7", "/ws/v1/partition/default/nodes", "/ws/v1/partition/default/node/node-007",
	"/ws/v1/partition/default/placementrules", "/ws/v1/partition/default/usage/users", "/ws/v1/partition/default/usage/user/ann",
	"/ws/v1/partition/default/usage/groups", "/ws/v1/partition/default/usage/group/staff",
	"/api/v1/decisions?limit=1000", "/api/v1/holds", "/api/v1/pods/default/wait-00007/explain", "/api/v1/pods/default/run-00007/explain",
	"/", "/waiting", "/nodes", "/node?name=node-007", "/decisions", "/configuration", "/health", "/style.css", "/icon.svg",
	"/ws/v1/validate-conf " + "partitions: [{name: default, queues: [{name: root, queues: [{name: a}]}]}]",
	"/ws/v1/validate-conf " + pagedDocument(),
	"/api/v1/preview " + `{apiVersion: v1, kind: Pod, metadata: {name: new, labels: {queue: root.p7.q7, applicationId: new}}, ` +
		`spec: {schedulerName: yunikorn, containers: [{name: main, image: pause, resources: {requests: {cpu: "1"}}}]}}`,
}

// neverEnds are the patterns without an example, because their answers do not end.
var neverEnds = []string{"GET /ws/v1/events/stream"}

// withoutExample returns the patterns that match none of the pages.
func withoutExample(patterns, pages []string) []string {
	mux := http.NewServeMux()
	for _, pattern := range patterns {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	asked := map[string]bool{}
	for _, page := range pages {
		method, path := http.MethodGet, page
		if before, _, has := strings.Cut(page, " "); has {
			method, path = http.MethodPost, before
		}
		_, pattern := mux.Handler(httptest.NewRequest(method, path, nil))
		asked[pattern] = true
	}
	return slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool { return asked[pattern] })
}

// TestEveryPageHasAnExample: BenchmarkEveryPage requests every pattern that is served.
func TestEveryPageHasAnExample(t *testing.T) {
	patterns := rest.NewServer(rest.Options{}).Patterns()
	if missing := withoutExample(patterns, everyPage); !slices.Equal(missing, neverEnds) {
		t.Errorf("without an example: %q, want %q", missing, neverEnds)
	}
	if missing := withoutExample(append(patterns, "GET /new/{name}"), everyPage); !slices.Contains(missing, "GET /new/{name}") {
		t.Error("a new page without an example is not noticed")
	}
}

// BenchmarkEveryPage sends HTTP requests to a busy scheduler, as browsers do: compressed,
// and without unpacking the answers. It reports the fastest, the median and the slowest
// answer of each page, and the CPU time of the whole process meanwhile, which other load
// on the machine does not increase. On a quiet machine no answer should take 200 ms.
func BenchmarkEveryPage(b *testing.B) {
	address := freeAddress(b)
	c := start(b, options{queues: pagedDocument(), rest: address, before: fillForPages})
	c.eventually("all pods are in the books", func() bool {
		return c.store.Snapshot().Root().Allocated.Get("pods") == pagedNodes*pagedPerNode
	})
	c.offerPreviews(b, options{queues: pagedDocument(), rest: address})
	for _, page := range everyPage {
		path, body, _ := strings.Cut(page, " ")
		for _, coding := range []string{"gzip", "identity"} {
			b.Run(strings.TrimPrefix(strings.ReplaceAll(path, "/", "_"), "_")+"/"+coding, func(b *testing.B) {
				benchmarkPage(b, "http://"+address+path, body, coding)
			})
		}
	}
}

func benchmarkPage(b *testing.B, url, body, coding string) {
	var took []time.Duration
	var used time.Duration
	size := int64(0)
	for b.Loop() {
		began, usedBefore := time.Now(), processorTime(b)
		// Large answers are cached for equal requests. The requests here differ, so none
		// is answered from the cache.
		size = ask(b, url, body, fmt.Sprintf("%s, x-%d", coding, len(took)))
		took = append(took, time.Since(began))
		used += processorTime(b) - usedBefore
	}
	slices.Sort(took)
	ms := func(t time.Duration) float64 { return float64(t.Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(took[0]), "fastest-ms")
	b.ReportMetric(ms(took[len(took)/2]), "median-ms")
	b.ReportMetric(ms(took[len(took)-1]), "slowest-ms")
	b.ReportMetric(ms(used)/float64(len(took)), "cpu-ms")
	b.ReportMetric(float64(size), "bytes/answer")
}

// processorTime is the CPU time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// offerPreviews makes REST offer previews, as the scheduler's command does.
func (c *cluster) offerPreviews(b *testing.B, o options) {
	b.Helper()
	profiles := map[string]framework.Framework{}
	for name, profile := range c.scheduler.Profiles {
		profiles[name] = profile
	}
	registry := plugins.NewInTreeRegistry()
	registry[probeName] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return newProbe(), nil }
	cfg, _ := configuration(b, o)
	previewer, shared, err := preemption.NewPreviewer(b.Context(), cfg, profiles, registry, c.scheduler.Cache)
	if err != nil {
		b.Fatal(err)
	}
	shared.OfferPreviews(previewer)
}

// ask reads a whole answer in the requested coding, and returns its size.
func ask(b *testing.B, url, body, coding string) int64 {
	b.Helper()
	method, reader := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, reader = http.MethodPost, strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(b.Context(), method, url, reader)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", coding)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	size, err := io.Copy(io.Discard, answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d, %d bytes, error %v", url, answer.StatusCode, size, err)
	}
	return size
}

func freeAddress(b *testing.B) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
