package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
	"github.com/paddock-scheduler/paddock/pkg/web"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

type cluster struct {
	*webtest.Cluster
	server     *Server
	http       http.Handler
	created    map[string]time.Time // by the names of pods
	foreigners int
}

// newServer makes a server. Options that a test leaves out are those of an empty scheduler that leads.
func newServer(o Options) *Server {
	empty := store.New(config.Default(), store.Options{})
	o.Inventory = cmp.Or(o.Inventory, inventory.New(empty))
	o.Record = cmp.Or(o.Record, record.New(empty.Follow(output.Decisions)))
	o.Events = cmp.Or(o.Events, eventlog.New(empty.Follow(output.Facts), eventlog.Size))
	o.Explainer = cmp.Or(o.Explainer, &empty.Readers)
	o.Clock = cmp.Or[clock.WithTicker](o.Clock, clock.RealClock{})
	if o.Previewer == nil {
		o.Previewer = func() Previewer { return nil }
	}
	o.Taint = func(node string) string { return "held=of-" + node }
	o.Leading = func() bool { return true }
	o.Configuration = func() web.Configuration { return web.Configuration{} }
	o.NodeLabels = func(string) map[string]string { return nil }
	return NewServer(o)
}

func newCluster(t testing.TB, document string) *cluster {
	t.Helper()
	return show(webtest.New(t, document))
}

func show(c *webtest.Cluster) *cluster {
	server := newServer(Options{
		Inventory: c.Inventory, Events: c.Events, Record: c.Record, Explainer: &c.Store.Readers, Clock: c.Clock,
		Build: map[string]string{"buildVersion": "test"},
	})
	server.CheckHealth()
	return &cluster{Cluster: c, server: server, http: server.Handler(), created: map[string]time.Time{}}
}

func (c *cluster) do(method, path string) (*httptest.ResponseRecorder, []byte) {
	w := ask(c.http, method, path, "")
	return w, w.Body.Bytes()
}

func ask(handler http.Handler, method, path, body string) *httptest.ResponseRecorder {
	return answer(handler, httptest.NewRequest(method, path, strings.NewReader(body)))
}

func answer(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func (c *cluster) ask(r *http.Request) *httptest.ResponseRecorder { return answer(c.http, r) }

func read[D any](t testing.TB, c *cluster, path string) (document D) {
	t.Helper()
	w, body := c.do(http.MethodGet, path)
	if err := json.Unmarshal(body, &document); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d, %v: %s", path, w.Code, err, body)
	}
	return document
}

const (
	partitionPath = "/ws/v1/partition/default/"
	queuesPath    = partitionPath + "queues"
)

// referenceDocument and the pods of referenceCluster are the cluster of
// testdata/reference.json, which is what YuniKorn 1.9.0 answered for it, without
// quotaPreemptionDelay and the fields that partitionOf takes out.
const referenceDocument = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: '*'
    queues:
    - name: ds
      resources: {guaranteed: {memory: 8Gi, vcore: 4}}
      properties: {priority.offset: "100"}
    - name: tenants
      parent: true
      resources: {max: {memory: 128Gi, vcore: 32}}
      queues:
      - name: a
        resources: {guaranteed: {memory: 64Gi, vcore: 16}, max: {memory: 128Gi, vcore: 32}}
        properties: {application.sort.policy: fifo, preemption.delay: 5s}
      - name: b
        resources: {guaranteed: {memory: 64Gi, vcore: 16}, max: {memory: 128Gi, vcore: 32}}
        properties: {preemption.delay: 5s}
    - name: bench
`

func referenceCluster(t *testing.T) *cluster {
	c := newCluster(t, referenceDocument)
	for i := range 5 {
		c.Node(fmt.Sprint("n", i), "vcore=8 memory=32Gi pods=110 ephemeral-storage=200Gi")
	}
	run := func(queue, app string, pods int) {
		for i := range pods {
			c.Pod(fmt.Sprint(app, "-", i), queue, app, "vcore=1 memory=1Gi", "n0")
		}
	}
	run("root.ds", "ds", 5)
	run("root.tenants.a", "a-1", 11)
	run("root.tenants.a", "a-2", 11)
	run("root.tenants.b", "b-1", 6)
	return c
}

// partitionOf takes out the partition, which YuniKorn names at root only.
func partitionOf(t *testing.T, queue map[string]any) {
	t.Helper()
	expect.That(t, queue["partition"] == documents.Partition,
		"queue %v: partition %v", queue["queuename"], queue["partition"])
	delete(queue, "partition")
	children, _ := queue["children"].([]any)
	for _, c := range children {
		partitionOf(t, c.(map[string]any))
	}
}

func readJSON(t *testing.T, path string) map[string]any {
	t.Helper()
	var out map[string]any
	expect.OK(t, json.Unmarshal(expect.Get(os.ReadFile(path))(t), &out))
	return out
}

func TestQueuesAnswerLikeYuniKorn(t *testing.T) {
	c := referenceCluster(t)
	w, _ := c.do(http.MethodGet, queuesPath)
	checkHeader(t, w)
	got := read[map[string]any](t, c, queuesPath)
	partitionOf(t, got)
	expect.Same(t, "(-YuniKorn +ours)", readJSON(t, "testdata/reference.json"), got)
}

func jsonType(value any) string {
	switch v := value.(type) {
	case map[string]any:
		types := map[string]bool{}
		for _, x := range v {
			types[jsonType(x)] = true
		}
		switch {
		case types["number"] && len(types) == 1:
			return "numbers by name"
		case types["string"] && len(types) == 1:
			return "strings by name"
		}
		return "object"
	case []any:
		if len(v) == 0 {
			return "empty list"
		}
		return "list of " + jsonType(v[0])
	case string:
		return "string"
	case bool:
		return "bool"
	case float64:
		return "number"
	}
	return fmt.Sprintf("%T", value)
}

// TestNamesAreDecodedOnceMore: YuniKorn's clients encode names twice. A name counts as it
// came where something has it.
func TestNamesAreDecodedOnceMore(t *testing.T) {
	const valid = "partitions:\n- name: default\n  queues:\n  - name: root\n    submitacl: \"*\"\n    queues:\n" +
		"    - name: a/b\n      limits: [{groups: [\"dev:ops\"], maxapplications: 3}]\n    - name: \"c#d\"\n"
	c := newCluster(t, valid)
	c.does(t, `
		pod name=p queue=root.a/b app=app request=vcore=1 node=n1 user=a/b groups=dev:ops
		pod name=p2 queue=root.c#d app=app2 request=vcore=1 node=n1 user=a%2Fb
	`)
	for path, want := range map[string]string{
		"queue/root.a%2Fb":                   `"queuename":"root.a/b"`,
		"queue/root.a%252Fb":                 `"queuename":"root.a/b"`,
		"queue/root.A%252fb":                 `"queuename":"root.a/b"`,
		"queue/root.c%2523d":                 `"queuename":"root.c#d"`,
		"queue/root.a%252Fb/applications":    `"applicationID":"app"`,
		"queue/root.a%252Fb/application/app": `"applicationID":"app"`,
		"usage/user/a%2Fb":                   `"userName":"a/b"`,
		"usage/user/a%252Fb":                 `"userName":"a%2Fb"`, // as it came
		"usage/group/dev%3Aops":              `"groupName":"dev:ops"`,
		"usage/group/dev%253Aops":            `"groupName":"dev:ops"`,
		"queue/root.a%25252Fb":               "",
		"queue/root.%25zz":                   "",
		"usage/user/%2525":                   "",
		"usage/group/none%252F":              "",
	} {
		w, body := c.do(http.MethodGet, partitionPath+path)
		code := http.StatusOK
		if want == "" {
			code = http.StatusNotFound
		}
		expect.That(t, w.Code == code && strings.Contains(string(body), want),
			"%s: %d %s, want %d %s", path, w.Code, body, code, want)
	}
}

// TestNodeHasItsLabels: attributes are the labels, and YuniKorn's own entries.
func TestNodeHasItsLabels(t *testing.T) {
	c := newCluster(t, "")
	c.Node("n1", "vcore=1")
	c.Node("n2", "vcore=1")
	labels := map[string]map[string]string{"n1": {"zone": "a", "kubernetes.io/hostname": "host", "si/node-partition": "mine"}}
	c.server.options.NodeLabels = func(name string) map[string]string { return labels[name] }
	for name, want := range map[string]map[string]string{
		"n1": {"zone": "a", "kubernetes.io/hostname": "host", "si.io/hostname": "n1", "si/node-partition": "default"},
		"n2": {"si.io/hostname": "n2", "si/node-partition": "default"},
	} {
		node := read[struct{ Attributes map[string]string }](t, c, partitionPath+"node/"+name)
		expect.Same(t, "attributes of "+name, want, node.Attributes)
	}
	expect.Same(t, "the labels of the informer's node were changed", 3, len(labels["n1"]))
}

// TestClusterIsCalledAsConfigured: clusterId and rmId follow service.clusterId.
func TestClusterIsCalledAsConfigured(t *testing.T) {
	c := newCluster(t, "")
	c.server.options.Build = documents.BuildInformation()
	for _, name := range []string{"", "east", ""} {
		spec := *config.Default()
		spec.ClusterID = name
		c.Store.Configure(&spec, c.Now)
		want := cmp.Or(name, "mycluster")
		for path, part := range map[string]string{
			"/ws/v1/partitions": `"clusterId":"` + want + `"`, "/ws/v1/scheduler/node-utilizations": `"clusterId":"` + want + `"`,
			"/ws/v1/clusters": `"rmId":"` + want + `"`, "/ws/v1/fullstatedump": `"rmId":"` + want + `"`,
		} {
			_, body := c.do(http.MethodGet, path)
			expect.That(t, strings.Contains(string(body), part), "%s: %s, want %s", path, body, part)
		}
	}
}

// kept is what no request changes. The first three are made anew with any change of what
// they show, also to the same.
type kept struct {
	spec   *config.Spec
	queues *queues.Snapshot
	view   *inventory.View
	events uint64            // the number of the next one
	waits  [3]reasons.Reason // why a pod waits
}

func (c *cluster) kept() kept {
	c.Events.Collect()
	_, next := c.Events.Bounds()
	k := kept{spec: c.Store.Spec(), queues: c.Store.Snapshot(), view: c.Inventory.View(), events: next}
	for i := range k.waits {
		k.waits[i] = c.Store.Explain(types.UID(fmt.Sprint("uid-pod-", i+1)))
	}
	return k
}

// newFuzzed is a cluster with a pod that runs, one that cannot, and one without a queue.
func newFuzzed(t testing.TB) *cluster {
	t.Helper()
	c := newCluster(t, referenceDocument)
	c.Node("n0", "vcore=8 memory=32Gi pods=110")
	c.Pod("pod-1", "root.tenants.a", "a-1", "vcore=1", "n0")
	c.Pod("pod-2", "root.tenants.b", "b-1", "vcore=99", "")
	c.Pod("pod-3", "root.nowhere", "c-1", "vcore=1", "")
	return c
}

// FuzzQueries asks for any page with any query: the answer is JSON, except for the pages
// for people, an error is the reader's fault and says which, and nothing changes.
func FuzzQueries(f *testing.F) {
	for _, seed := range [][2]string{
		{"/ws/v1/partition/default/queues", ""}, {"/ws/v1/partition/default/queue/root.a", "subtree"},
		{"/ws/v1/partition/default/applications/active", "status=running,accepted"}, {"/ws/v1/partition/default/applications/%", "status="},
		{"/ws/v1/partition/default/application/x", "namespace=ns"}, {"/ws/v1/partition/default/node/n%2F1", ""},
		{"/ws/v1/partition/default/usage/user/%00", ""}, {"/api/v1/decisions", "limit=1&queue=root"}, {"/api/v1/decisions", "limit=-1"},
		{"/api/v1/holds", "namespace=team&pod=%zz"}, {"/api/v1/pods/team/pod-1/explain", ""}, {"/api/v1/pods/team/pod-2/explain", "x=y"},
		{"/api/v1/pods/../..//explain", ""}, {"/api/v1/pods/%2e%2e/a%2fb/explain", ""}, {"/debug/fullstatedump", ""}, {"/", "?"},
		{"/ws/v1/history/apps", "count=99999999999999999999"}, {"/ws/v1/config", "\x7f"}, {"/ws/v1/scheduler/healthcheck", ";"},
		{"#", "0"}, {"style.css", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	c := newFuzzed(f)
	before := c.kept()
	f.Fuzz(func(t *testing.T, path, query string) {
		target, err := url.Parse("http://scheduler/" + path)
		if err != nil {
			return // no client sends that
		}
		target.RawQuery = query
		r := &http.Request{Method: http.MethodGet, URL: target, Host: "scheduler", Body: http.NoBody}
		r.Header = http.Header{"Accept": {"application/json"}}
		w := c.ask(r)
		expect.That(t, w.Code < 500, "%d: %s", w.Code, w.Body)
		after := c.kept()
		expect.That(t, after == before, "there was\n%+v\nand is\n%+v", before, after)
		page := strings.HasPrefix(w.Header().Get("Content-Type"), "text/")
		if machines := strings.HasPrefix(target.Path, "/ws/") || strings.HasPrefix(target.Path, "/api/"); page && !machines {
			return // see pkg/web
		}
		expect.That(t, w.Code != http.StatusOK || json.Valid(w.Body.Bytes()), "no JSON: %s", w.Body)
		if w.Code >= http.StatusBadRequest {
			var p documents.Problem
			expect.Holds(t, json.Unmarshal(w.Body.Bytes(), &p))
			expect.That(t, p.StatusCode == w.Code && p.Message != "", "%d without why: %s", w.Code, w.Body)
		}
	})
}

// FuzzValidate has any document judged: the answer says whether it is allowed, and why
// not, and nothing changes.
func FuzzValidate(f *testing.F) {
	for _, document := range []string{
		referenceDocument, "", "partitions: []", "partitions: 7", "{{", "partitions:\n- name: default\n  queues:\n  - name: root\n    resources: {max: {vcore: -1}}\n", "\xff\x00",
	} {
		f.Add([]byte(document))
	}
	c := newFuzzed(f)
	before := c.kept()
	f.Fuzz(func(t *testing.T, document []byte) {
		w := ask(c.http, http.MethodPost, "/ws/v1/validate-conf", string(document))
		var says documents.Validation
		expect.OK(t, json.Unmarshal(w.Body.Bytes(), &says))
		expect.Same(t, "status", http.StatusOK, w.Code)
		expect.That(t, says.Allowed != (says.Reason != ""), "%+v", says)
		after := c.kept()
		expect.That(t, after == before, "there was\n%+v\nand is\n%+v", before, after)
	})
}

func TestRequestsThatChangeSomethingAreFound(t *testing.T) {
	for name, change := range map[string]func(*cluster){
		"the same configuration again": func(c *cluster) { c.Configure(referenceDocument) },
		"another configuration":        func(c *cluster) { c.Configure("partitions: [{name: default, queues: [{name: root}]}]") },
		"a pod comes":                  func(c *cluster) { c.Pod("pod-4", "root.bench", "d-1", "vcore=1", "") },
		"a pod without a queue goes":   func(c *cluster) { c.Store.Delete("uid-pod-3", c.Now) },
		"a node closes":                func(c *cluster) { c.Store.SetNodeSchedulable("n0", false, c.Now) },
		"a node shrinks":               func(c *cluster) { c.Node("n0", "vcore=7 memory=32Gi pods=110") },
		"a pod is told something else": func(c *cluster) { c.Store.NoNode("uid-pod-2", "", reasons.New(reasons.NoNodeFits, "no"), c.Now) },
		"":                             func(*cluster) {},
	} {
		c := newFuzzed(t)
		before := c.kept()
		server := c.http
		c.http = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(c)
			server.ServeHTTP(w, r)
		})
		c.do(http.MethodGet, queuesPath)
		expect.Same(t, name+": found", name != "", c.kept() != before)
	}
}
