package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

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
		w := c.ask(&http.Request{
			Method: http.MethodGet, URL: target, Host: "scheduler",
			Header: http.Header{"Accept": {"application/json"}}, Body: http.NoBody,
		})
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
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.StatusCode != w.Code || p.Message == "" {
				t.Errorf("%d without a word of why: %v: %s", w.Code, err, w.Body)
			}
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
		if err := json.Unmarshal(w.Body.Bytes(), &says); w.Code != http.StatusOK || err != nil {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		expect.That(t, says.Allowed != (says.Reason != ""),
			"allowed: %v, because of %q", says.Allowed, says.Reason)
		after := c.kept()
		expect.That(t, after == before, "there was\n%+v\nand is\n%+v", before, after)
	})
}

// TestRequestsThatChangeSomethingAreFound plants changes that a request could make.
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
		found := c.kept() != before
		expect.That(t, found == (name != ""), "%q: found %v", name, found)
	}
}
