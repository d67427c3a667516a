package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// TestStandbySaysSo: each page of a standby replica says that it stands by and that the
// leader knows what was tried; once it leads it does not say so.
func TestStandbySaysSo(t *testing.T) {
	c := newCluster(t, `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: '*'
    queues:
    - {name: a, resources: {max: {vcore: 4}}}
`)
	leads := false
	c.server.options.Leading = func() bool { return leads }
	for _, p := range []podArgs{
		{name: "tried", queue: "root.a", app: "x", request: "vcore=1"},
		{name: "large", queue: "root.a", app: "y", request: "vcore=8"},
		{name: "lost", queue: "root.b", app: "z", request: "vcore=1"},
		{name: "runs", queue: "root.a", app: "z", request: "vcore=1", node: "n1"},
	} {
		c.store.Upsert(p.pod(t, c.now, c.now), c.now)
	}
	for _, e := range c.server.endpoints() {
		role := c.ask(httptest.NewRequest(e.method, strings.NewReplacer("{", "", "}", "").Replace(e.path), http.NoBody)).Header().Get(RoleHeader)
		expect.Same(t, e.path+" has "+RoleHeader, RoleStandby, role)
	}
	for pod, want := range map[string]bool{"tried": true, "large": true, "lost": false, "runs": false} {
		x := c.explanation(t, pod)
		if told := slices.Contains(x.ToDo, documents.AskLeader); !x.Standby || told != want {
			t.Errorf("pod %s: standby %t, told to ask the leader: %t, want %t", pod, x.Standby, told, want)
		}
	}
	want := "Pod ns/tried was let through. Only the leader knows the result; this replica is a standby."
	expect.Same(t, "", want, c.explanation(t, "tried").Summary)
	standing := c.ask(httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if !strings.Contains(standing.Body.String(), "This replica is a standby") {
		t.Error("the web page does not say that the replica is a standby")
	}

	leads = true
	x := c.explanation(t, "tried")
	if x.Standby || slices.Contains(x.ToDo, documents.AskLeader) || !strings.Contains(x.Summary, "is looking for a node") {
		t.Errorf("the leader says: %+v", x)
	}
	again := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	again.Header.Set("If-None-Match", standing.Header().Get("ETag"))
	page := c.ask(again)
	if page.Code != http.StatusOK || page.Header().Get(RoleHeader) != "" || strings.Contains(page.Body.String(), "This replica is a standby") {
		t.Error("the leader says that it is a standby, or that the page is as it was")
	}
}

// explanation asks about a pod.
func (c *cluster) explanation(t *testing.T, pod string) *documents.Explanation {
	t.Helper()
	w := c.ask(httptest.NewRequest(http.MethodGet, "/api/v1/pods/ns/"+pod+"/explain", http.NoBody))
	var x documents.Explanation
	if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return &x
}
