package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
	"github.com/paddock-scheduler/paddock/pkg/web"
)

// cluster is a store and a server that shows it.
type cluster struct {
	store  *store.Store
	record *record.Record
	server *Server
	http   http.Handler
	clock  *clocktesting.FakeClock
	now    time.Time
	pods   int
}

// newServer makes a server. Options that a test leaves out are those of an empty scheduler
// that leads.
func newServer(o Options) *Server {
	empty := store.New(config.Default(), store.Options{})
	if o.Inventory == nil {
		o.Inventory = inventory.New(empty)
	}
	if o.Record == nil {
		o.Record = record.New(empty.Follow(output.Decisions))
	}
	if o.Events == nil {
		o.Events = eventlog.New(empty.Follow(output.Facts), eventlog.Size)
	}
	if o.Explainer == nil {
		o.Explainer = empty
	}
	if o.Previewer == nil {
		o.Previewer = func() Previewer { return nil }
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Taint == nil {
		o.Taint = func(string) string { return "" }
	}
	o.Leading = func() bool { return true }
	o.Configuration = func() web.Configuration { return web.Configuration{} }
	o.NodeLabels = func(string) map[string]string { return nil }
	return NewServer(o)
}

func newCluster(t testing.TB, document string) *cluster {
	t.Helper()
	c := &cluster{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	c.store = store.New(config.Default(), store.Options{})
	log := eventlog.New(c.store.Follow(output.Facts), eventlog.Size)
	c.configure(t, document)
	c.store.Start(c.now)
	c.clock = clocktesting.NewFakeClock(c.now)
	c.record = record.New(c.store.Follow(output.Decisions))
	c.server = newServer(Options{Inventory: inventory.New(c.store), Events: log, Record: c.record, Explainer: c.store, Clock: c.clock, Build: map[string]string{"buildVersion": "test"},
		Taint: func(node string) string { return "held=of-" + node }})
	c.server.CheckHealth()
	c.http = c.server.Handler()
	return c
}

// newUnstarted is a cluster that has not read its configuration yet.
func newUnstarted(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), store: store.New(config.Default(), store.Options{})}
	c.server = newServer(Options{Inventory: inventory.New(c.store)})
	c.http = c.server.Handler()
	return c
}

func (c *cluster) configure(t testing.TB, document string) {
	t.Helper()
	spec := expect.Get(config.Parse([]byte(document)))(t)
	c.store.Configure(spec, c.now)
}

// amountsOf reads "vcore=2 memory=1Gi".
func amountsOf(t testing.TB, text string) resources.Vector {
	t.Helper()
	var entries []resources.Entry
	for _, part := range strings.Fields(text) {
		name, number, _ := strings.Cut(part, "=")
		q, err := resource.ParseQuantity(number)
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		amount := q.Value()
		if name == resources.CPU {
			amount = q.MilliValue()
		}
		entries = append(entries, resources.Entry{Name: name, Amount: resources.Amount(amount)})
	}
	return resources.VectorOf(entries...)
}

func (c *cluster) node(t testing.TB, name, allocatable string) {
	t.Helper()
	c.store.UpsertNode(name, amountsOf(t, allocatable), c.now)
}

// add adds a pod; it runs if there is a node.
func (c *cluster) add(t testing.TB, queue, app, request, node string) {
	t.Helper()
	c.pods++
	name := fmt.Sprint("pod-", c.pods)
	c.store.Upsert(objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(name), Namespace: "ns", Name: name, Created: c.now,
			Labels: map[string]string{"queue": queue, "applicationId": app},
		},
		Status:  objects.Status{Node: node},
		Request: amountsOf(t, request+" pods=1"),
	}, c.now)
}

// do sends a request and returns the answer and its body.
func (c *cluster) do(t testing.TB, method, path string) (*httptest.ResponseRecorder, []byte) {
	t.Helper()
	w := c.ask(httptest.NewRequest(method, path, nil))
	return w, w.Body.Bytes()
}

// ask answers a request.
func (c *cluster) ask(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.http.ServeHTTP(w, r)
	return w
}

const queuesPath = "/ws/v1/partition/default/queues"

// queues returns all queues, after a look at the header.
func (c *cluster) queues(t testing.TB) map[string]any {
	t.Helper()
	r, body := c.do(t, http.MethodGet, queuesPath)
	if r.Code != http.StatusOK {
		t.Fatalf("status %d: %s", r.Code, body)
	}
	checkHeader(t, r)
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return out
}

// referenceDocument and referencePods are the cluster of testdata/reference.json,
// which is what YuniKorn 1.9.0 answered for it, without quotaPreemptionDelay and
// the fields that partitionOf takes out.
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
		c.node(t, fmt.Sprint("n", i), "vcore=8 memory=32Gi pods=110 ephemeral-storage=200Gi")
	}
	for _, run := range []struct {
		queue, app string
		pods       int
	}{
		{"root.ds", "ds", 5}, {"root.tenants.a", "a-1", 11}, {"root.tenants.a", "a-2", 11}, {"root.tenants.b", "b-1", 6},
	} {
		for range run.pods {
			c.add(t, run.queue, run.app, "vcore=1 memory=1Gi", "n0")
		}
	}
	return c
}

// partitionOf takes out the partition, which YuniKorn names at root only.
func partitionOf(t *testing.T, queue map[string]any) {
	t.Helper()
	if queue["partition"] != documents.Partition {
		t.Errorf("queue %v: partition %v", queue["queuename"], queue["partition"])
	}
	delete(queue, "partition")
	children, _ := queue["children"].([]any)
	for _, c := range children {
		partitionOf(t, c.(map[string]any))
	}
}

func readJSON(t *testing.T, path string) map[string]any {
	t.Helper()
	text := expect.Get(os.ReadFile(path))(t)
	var out map[string]any
	expect.OK(t, json.Unmarshal(text, &out))
	return out
}

func TestQueuesAnswerLikeYuniKorn(t *testing.T) {
	got := referenceCluster(t).queues(t)
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
