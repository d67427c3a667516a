package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzQueries asks for any page with any query: the answer is JSON, but for the pages
// for people, and an error is the reader's fault and says which.
func FuzzQueries(f *testing.F) {
	for _, seed := range [][2]string{
		{"/ws/v1/partition/default/queues", ""}, {"/ws/v1/partition/default/queue/root.a", "subtree"},
		{"/ws/v1/partition/default/applications/active", "status=running,accepted"}, {"/ws/v1/partition/default/applications/%", "status="},
		{"/ws/v1/partition/default/application/x", "namespace=ns"}, {"/ws/v1/partition/default/node/n%2F1", ""},
		{"/ws/v1/partition/default/usage/user/%00", ""}, {"/api/v1/decisions", "limit=1&queue=root"}, {"/api/v1/decisions", "limit=-1"},
		{"/api/v1/holds", "namespace=ns&pod=%zz"}, {"/api/v1/pods/ns/pod-1/explain", ""}, {"/api/v1/pods/ns/pod-2/explain", "x=y"},
		{"/api/v1/pods/../..//explain", ""}, {"/api/v1/pods/%2e%2e/a%2fb/explain", ""}, {"/debug/fullstatedump", ""}, {"/", "?"},
		{"/ws/v1/history/apps", "count=99999999999999999999"}, {"/ws/v1/config", "\x7f"}, {"/ws/v1/scheduler/healthcheck", ";"},
		{"#", "0"}, {"style.css", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	c := newCluster(f, referenceDocument)
	c.node(f, "n0", "vcore=8 memory=32Gi pods=110")
	c.add(f, "root.tenants.a", "a-1", "vcore=1", "n0")
	c.add(f, "root.tenants.b", "b-1", "vcore=99", "")
	c.add(f, "root.nowhere", "c-1", "vcore=1", "")
	f.Fuzz(func(t *testing.T, path, query string) {
		target, err := url.Parse("http://scheduler/" + path)
		if err != nil {
			return // no client sends that
		}
		target.RawQuery = query
		w := httptest.NewRecorder()
		c.http.ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: target, Header: http.Header{"Accept": {"application/json"}}, Body: http.NoBody, Host: "scheduler"})
		if w.Code >= 500 {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		page := strings.HasPrefix(w.Header().Get("Content-Type"), "text/")
		if machines := strings.HasPrefix(target.Path, "/ws/") || strings.HasPrefix(target.Path, "/api/"); page && !machines {
			return // see pkg/web
		}
		if w.Code == http.StatusOK && !json.Valid(w.Body.Bytes()) {
			t.Errorf("no JSON: %s", w.Body)
		}
		if w.Code >= http.StatusBadRequest {
			var p Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.StatusCode != w.Code || p.Message == "" {
				t.Errorf("%d without a word of why: %v: %s", w.Code, err, w.Body)
			}
		}
	})
}

// FuzzValidate has any document judged: the answer says whether it is allowed, and why
// not, and the queues are what they were.
func FuzzValidate(f *testing.F) {
	for _, document := range []string{
		referenceDocument, "", "partitions: []", "partitions: 7", "{{", "partitions:\n- name: default\n  queues:\n  - name: root\n    resources: {max: {vcore: -1}}\n", "\xff\x00",
	} {
		f.Add([]byte(document))
	}
	c := newCluster(f, referenceDocument)
	before, err := json.Marshal(c.queues(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		w := httptest.NewRecorder()
		c.http.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/ws/v1/validate-conf", bytes.NewReader(document)))
		var says Validation
		if err := json.Unmarshal(w.Body.Bytes(), &says); w.Code != http.StatusOK || err != nil {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		if says.Allowed == (says.Reason != "") {
			t.Errorf("allowed: %v, because of %q", says.Allowed, says.Reason)
		}
		if after, err := json.Marshal(c.queues(t)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%v; the queues were\n%s\nand are\n%s", err, before, after)
		}
	})
}
